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

TEST(Planned, SumsAreRoundedOnce) {
  Planned planned(Rank{0}, 3);
  ASSERT_TRUE(planned.choose(Op::all_reduce, PlanChoice{}));
  Card card{.op = Op::all_reduce, .dtype = kernels::DType::float32, .bytes = 100};
  EXPECT_NE(planned.choice_for(card), nullptr);
  card.reduce = kernels::ReduceOp::reproducible_sum;
  EXPECT_EQ(planned.choice_for(card), nullptr);
  card.reduce = kernels::ReduceOp::sum;
  card.dtype = kernels::DType::bfloat16;
  EXPECT_EQ(planned.choice_for(card), nullptr);
  ASSERT_TRUE(planned.choose(Op::all_reduce, PlanChoice{.algorithm = plan::Algorithm::direct}));
  EXPECT_NE(planned.choice_for(card), nullptr);
  for (const auto twice :
       {kernels::ReduceOp::avg, kernels::ReduceOp::premul_sum, kernels::ReduceOp::reproducible_avg}) {
    card.reduce = twice;  // the plan would round before it divides, or after it multiplies
    EXPECT_EQ(planned.choice_for(card), nullptr);
  }
  card.reduce = kernels::ReduceOp::max;
  EXPECT_NE(planned.choice_for(card), nullptr);
  card.plain = false;
  EXPECT_EQ(planned.choice_for(card), nullptr);
}

}  // namespace
}  // namespace tutti::engine
