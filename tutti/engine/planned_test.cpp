#include "tutti/engine/planned.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::engine {
namespace {

using testing::HasSubstr;

TEST(Planned, WhatThereIsNoPlanForIsRefused) {
  Planned planned(Rank{0}, 3);
  EXPECT_THAT(planned.choose(Op::barrier, plan::Choice{}).error().message, HasSubstr("no plans for barrier"));
  EXPECT_THAT(planned.choose(Op::gather, plan::Choice{}).error().message, HasSubstr("no ring for gather"));
}

TEST(Planned, BlocksOfDifferentLengthsHaveNoPlan) {
  Planned planned(Rank{0}, 3);
  ASSERT_TRUE(planned.choose(Op::all_gather, plan::Choice{}));
  Card card{.op = Op::all_gather, .dtype = kernels::DType::float32, .bytes = 100};
  EXPECT_NE(planned.choice_for(card), nullptr);
  card.plain = false;
  EXPECT_EQ(planned.choice_for(card), nullptr);
}

TEST(Planned, ASmallHostHasFewerLeaders) {
  Planned planned(Rank{0}, 3);
  planned.set_hosts({{Rank{0}}, {Rank{1}, Rank{2}}});
  EXPECT_TRUE(planned.choose(Op::all_reduce, plan::Choices::parse("hybrid@2/4").value()).ok());
}

}  // namespace
}  // namespace tutti::engine
