#include "tutti/gradient/learner.h"

#include <gtest/gtest.h>

namespace tutti::gradient {
namespace {

using Needed = std::vector<std::uint8_t>;

/// One that has seen its first pass.
Learner learned(std::size_t parameters) {
  Learner learner(parameters);
  EXPECT_TRUE(learner.pass_over(Needed(parameters, 1), false)) << "the first pass shows the order";
  learner.divided();
  return learner;
}

TEST(Learner, LeavesAloneWhatIsAsBefore) {
  auto learner = learned(3);
  for (int pass = 0; pass < 10; ++pass) {
    EXPECT_FALSE(learner.pass_over(Needed{1, 1, 1}, false));
  }
}

TEST(Learner, PutsAsideWhatNobodyNeedsForAWhile) {
  auto learner = learned(3);
  EXPECT_FALSE(learner.pass_over(Needed{1, 0, 1}, false));
  EXPECT_FALSE(learner.pass_over(Needed{1, 0, 1}, false));
  EXPECT_TRUE(learner.pass_over(Needed{1, 0, 1}, false));
  learner.divided();
  EXPECT_TRUE(learner.is_aside(1));
  EXPECT_FALSE(learner.is_aside(0));
  EXPECT_FALSE(learner.pass_over(Needed{1, 1, 1}, false)) << "once may be chance";
  EXPECT_TRUE(learner.pass_over(Needed{1, 1, 1}, false));
  learner.divided();
  EXPECT_FALSE(learner.is_aside(1));
}

TEST(Learner, WhatIsNeededNowAndThenStays) {
  auto learner = learned(2);
  for (int pass = 0; pass < 30; ++pass) {
    EXPECT_FALSE(learner.pass_over(Needed{1, static_cast<std::uint8_t>(pass % 3 == 0 ? 1 : 0)}, false)) << pass;
  }
}

TEST(Learner, LearnsAnotherOrderButNotForEver) {
  auto learner = learned(2);
  int times = 0;
  for (int pass = 0; pass < 1000; ++pass) {
    if (learner.pass_over(Needed{1, 1}, true)) {
      learner.divided();
      ++times;
    }
  }
  EXPECT_GE(times, 3);
  EXPECT_LE(times, 10) << "where order is a matter of chance";
}

}  // namespace
}  // namespace tutti::gradient
