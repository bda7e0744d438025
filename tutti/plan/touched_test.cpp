#include "tutti/plan/touched.h"

#include <gtest/gtest.h>

#include "tutti/plan/algorithms.h"

namespace tutti::plan {
namespace {

constexpr std::size_t kBlock = 1 << 20;

/// Every byte beyond the cache costs a second.
Fabric host(double cache, int ranks) {
  Network network;
  network.levels = {{.name = "host"}};
  if (cache > 0) {
    network.processors.caches = {{.bytes = cache, .seconds_per_byte = 1}};
  }
  return {network, ranks};
}

class TouchedBytes : public testing::Test {
 protected:
  Plan plan_ = build({.algorithm = Algorithm::recursive_doubling, .ranks = 2}).value();
  Span block_{Buffer::output, 0, 1};
  Span other_{Buffer::scratch, 0, 1};
};

TEST_F(TouchedBytes, ComeFromTheRunBeforeThenFromThisOne) {
  // A block and scratch as long: two of them between one run's touch and the next one's.
  const auto fabric = host(1.5 * kBlock, 2);
  Touched touched(plan_, kBlock, fabric);
  const auto first = touched.touch(0, block_, 0, kBlock, 0);
  EXPECT_GT(first.seconds, 0.8 * kBlock);
  EXPECT_DOUBLE_EQ(first.missed, first.seconds);
  EXPECT_LT(touched.touch(0, block_, 0, kBlock, 1).seconds, 0.2 * kBlock);
  EXPECT_GT(touched.touch(1, block_, 0, kBlock, 1).seconds, 0.8 * kBlock);  // another rank's
}

TEST_F(TouchedBytes, WhatIsTouchedBetweenPushesThemOut) {
  const auto fabric = host(0.5 * kBlock, 2);
  Touched touched(plan_, kBlock, fabric);
  touched.touch(0, block_, 0, kBlock / 8, 0);
  EXPECT_LT(touched.touch(0, block_, 0, kBlock / 8, 1).seconds, 0.01 * kBlock);
  touched.touch(0, other_, 0, kBlock, 2);
  EXPECT_GT(touched.touch(0, block_, 0, kBlock / 8, 3).seconds, 0.9 * kBlock / 8);
}

TEST_F(TouchedBytes, PortionsOfOneStepAreOneTouch) {
  const auto fabric = host(0.5 * kBlock, 2);
  Touched touched(plan_, kBlock, fabric);
  double seconds = 0;
  for (std::size_t at = 0; at < kBlock; at += 512) {
    seconds += touched.touch(0, block_, at, 512, 0).seconds;
  }
  EXPECT_GT(seconds, 0.9 * kBlock);
}

TEST_F(TouchedBytes, WhatWasWrittenGoesBackToMemory) {
  const auto fabric = host(0.1 * kBlock, 2);
  const auto plan = build({.op = Op::all_gather, .algorithm = Algorithm::ring, .ranks = 2}).value();
  Touched touched(plan, kBlock, fabric);
  const Span input{Buffer::input, 0, 1};
  const Span output{Buffer::output, 0, 1};
  const auto read = touched.touch(0, input, 0, kBlock, 0);
  EXPECT_NEAR(read.missed, kBlock, 0.01 * kBlock);
  // By the run before, too.
  const auto written = touched.touch(0, output, 0, kBlock, 1, Touched::Access::write);
  EXPECT_NEAR(written.missed, 2 * kBlock, 0.01 * kBlock);
  EXPECT_NEAR(written.seconds, 2 * kBlock, 0.01 * kBlock);
  EXPECT_NEAR(touched.touch(0, output, 0, kBlock, 2).missed, 2 * kBlock, 0.01 * kBlock);
  EXPECT_NEAR(touched.touch(0, output, 0, kBlock, 3).missed, kBlock, 0.01 * kBlock);  // only read since
}

TEST_F(TouchedBytes, InputAndOutputOfASumAreTheSame) {
  const auto fabric = host(1.5 * kBlock, 2);
  Touched touched(plan_, kBlock, fabric);
  touched.touch(0, {Buffer::input, 0, 1}, 0, kBlock, 0);
  EXPECT_LT(touched.touch(0, block_, 0, kBlock, 1).seconds, 0.2 * kBlock);
}

TEST_F(TouchedBytes, CostNothingWithoutCaches) {
  const auto fabric = host(0, 2);
  Touched touched(plan_, kBlock, fabric);
  EXPECT_EQ(touched.touch(0, block_, 0, kBlock, 0).seconds, 0);
}

}  // namespace
}  // namespace tutti::plan
