#include "tutti/engine/planned.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::engine {
namespace {

using testing::HasSubstr;

TEST(PlanChoice, IsReadFromText) {
  EXPECT_EQ(PlanChoice::parse("ring").value().text(), "ring/1");
  EXPECT_EQ(PlanChoice::parse("double_tree/16").value().text(), "double_tree/16");
  for (const auto* bad : {"ring/", "ring/0", "ring/x", "ring/4097", "ring/4/4", "ring/-1"}) {
    EXPECT_THAT(PlanChoice::parse(bad).error().message, HasSubstr("a number of chunks, 1 to 4096")) << bad;
  }
  EXPECT_THAT(PlanChoice::parse("rong").error().message, HasSubstr("no algorithm 'rong'"));
}

TEST(Planned, WhatThereIsNoPlanForIsRefused) {
  Planned planned(Rank{0}, 3);
  EXPECT_THAT(planned.choose(Op::barrier, PlanChoice{}).error().message, HasSubstr("no plans for barrier"));
  EXPECT_THAT(planned.choose(Op::gather, PlanChoice{}).error().message, HasSubstr("no ring for gather"));
}

TEST(Planned, BlocksOfDifferentLengthsHaveNoPlan) {
  Planned planned(Rank{0}, 3);
  ASSERT_TRUE(planned.choose(Op::all_gather, PlanChoice{}));
  Card card{.op = Op::all_gather, .dtype = kernels::DType::float32, .bytes = 100};
  EXPECT_NE(planned.choice_for(card), nullptr);
  card.plain = false;
  EXPECT_EQ(planned.choice_for(card), nullptr);
}

TEST(Planned, LeadersAndLibrariesAreNamed) {
  const auto hybrid = PlanChoice::parse("hybrid@2/4").value();
  EXPECT_EQ(hybrid.algorithm, plan::Algorithm::hybrid);
  EXPECT_EQ(hybrid.leaders, 2U);
  EXPECT_EQ(hybrid.chunks, 4U);
  EXPECT_EQ(hybrid.text(), "hybrid@2/4");
  EXPECT_TRUE(PlanChoice::parse("library").value().library);
  EXPECT_NE(PlanChoice::parse("library").value().mark(), hybrid.mark());
  EXPECT_THAT(PlanChoice::parse("hybrid@0").error().message, HasSubstr("a number of leaders, 1 to 255"));
}

TEST(Planned, ASmallHostHasFewerLeaders) {
  Planned planned(Rank{0}, 3);
  planned.set_hosts({{Rank{0}}, {Rank{1}, Rank{2}}});
  EXPECT_TRUE(planned.choose(Op::all_reduce, PlanChoice::parse("hybrid@2/4").value()).ok());
}

}  // namespace
}  // namespace tutti::engine
