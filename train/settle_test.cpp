#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "train/config.h"

namespace tutti::train {
namespace {

using testing::HasSubstr;

template <class Change>
std::string why(int ranks, Change change) {
  Config config;
  change(config);
  const auto settled = settle(config, ranks);
  return settled ? "no error" : settled.error().message;
}

TEST(Settle, FillsInWhatFollows) {
  const auto config = settle({}, 2).value();
  EXPECT_EQ(config.layers, 2);
  EXPECT_EQ(config.context, 128);
  EXPECT_EQ(config.batch_tokens, 2048);
  EXPECT_EQ(config.warmup_steps, 80);
  EXPECT_DOUBLE_EQ(*config.learning_rate, 4e-3);
  EXPECT_DOUBLE_EQ(*config.minimum_rate, 4e-4);
  EXPECT_EQ(config.out, "runs/train");
  EXPECT_EQ(settle(config, 2).value(), config) << "what is settled stays";
}

TEST(Settle, WhatIsGivenStays) {
  Config config{.preset = "micro", .heads = 8, .batch_tokens = 256 * 5, .warmup_steps = 0};
  config = settle(config, 5).value();
  EXPECT_EQ(config.heads, 8);
  EXPECT_EQ(config.width, 256);
  EXPECT_EQ(config.batch_tokens, 1280);
  EXPECT_EQ(config.warmup_steps, 0);
}

TEST(Settle, TheUsualBatchFitsAnyNumberOfRanks) {
  for (int ranks = 1; ranks < 100; ++ranks) {
    const auto config = settle({}, ranks);
    ASSERT_TRUE(config.ok()) << config.error().message;
    EXPECT_GE(*config.value().batch_tokens, 2048);
    EXPECT_EQ(*config.value().batch_tokens % (128 * ranks), 0);
  }
}

TEST(Settle, AReproducibleBatchDoesNotDependOnTheRanks) {
  for (const int ranks : {1, 3, 8}) {
    const auto config = settle({.reproducible = true}, ranks).value();
    EXPECT_EQ(config.batch_tokens, 2048);
    EXPECT_EQ(passes(config, ranks), 8);
  }
  EXPECT_EQ(why(9, [](Config& c) { c.reproducible = true; }),
            "a reproducible step has 8 passes (8 x accumulation 1), which is not one for each of 9 ranks: accumulation "
            "2 would do");
  EXPECT_EQ(why(3,
                [](Config& c) {
                  c.reproducible = true;
                  c.batch_tokens = 1000;
                }),
            "batch_tokens is 1000, which is no multiple of 1024 = context 128 x 8 reproducible passes x accumulation "
            "1: 1024 would fit");
}

TEST(Settle, HeadsDivideTheWidth) {
  EXPECT_EQ(why(1, [](Config& c) { c.heads = 5; }), "heads is 5, which does not divide the width of 128: 4 or 8 would");
  EXPECT_EQ(why(1, [](Config& c) { c.heads = 200; }),
            "heads is 200, which does not divide the width of 128: 128 would");
  EXPECT_EQ(why(1, [](Config& c) { c.width = 7; }), "heads is 4, which does not divide the width of 7: 1 or 7 would");
}

TEST(Settle, BatchesFitContextsRanksAndPasses) {
  EXPECT_EQ(why(3,
                [](Config& c) {
                  c.batch_tokens = 4096;
                  c.accumulation = 2;
                }),
            "batch_tokens is 4096, which is no multiple of 768 = context 128 x ranks 3 x accumulation 2: 3840 or 4608 "
            "would fit");
  EXPECT_THAT(why(3, [](Config& c) { c.batch_tokens = 5; }), HasSubstr("accumulation 1: 384 would fit"));
  EXPECT_THAT(why(2'000'000'000,
                  [](Config& c) {
                    c.context = 1'000'000;
                    c.accumulation = 1'000'000;
                  }),
              HasSubstr("more tokens than can be counted"));
}

TEST(Settle, TheScheduleFitsTheSteps) {
  EXPECT_EQ(why(1,
                [](Config& c) {
                  c.steps = 5;
                  c.warmup_steps = 6;
                }),
            "warmup_steps is 6, and there are only 5 steps");
  EXPECT_EQ(why(1, [](Config& c) { c.minimum_rate = 0.5; }),
            "minimum_rate is 0.5, which is above the learning_rate of 0.004");
}

TEST(Settle, TheMeshFitsTheRanks) {
  EXPECT_EQ(why(4, [](Config& c) { c.mesh = "dp=4"; }), "no error");
  EXPECT_EQ(why(4, [](Config& c) { c.mesh = "dp=3"; }), "mesh dp=3 has 3 ranks; the world has 4");
  EXPECT_THAT(why(4, [](Config& c) { c.mesh = "dp=2,tp=2"; }), HasSubstr("so far, not along tp"));
}

}  // namespace
}  // namespace tutti::train
