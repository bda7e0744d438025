#include "tutti/engine/store_trial.h"

#include <gtest/gtest.h>

namespace tutti::engine {
namespace {

constexpr std::size_t kBytes = 100'000;

/// How often of so many operations it streamed, when they take that long.
int count_streamed(StoreTrial& trial, int operations, std::uint64_t ordinary, std::uint64_t streaming) {
  int streamed = 0;
  for (int i = 0; i < operations; ++i) {
    const bool streams = trial.streams(kBytes);
    trial.took(streams ? streaming : ordinary, streams);
    streamed += streams ? 1 : 0;
  }
  return streamed;
}

TEST(StoreTrial, TakesWhatIsQuicker) {
  StoreTrial trial;
  // Of eight periods four have a trial.
  EXPECT_EQ(count_streamed(trial, 1000, 100, 300), 4 * StoreTrial::kTries);
  StoreTrial other;
  EXPECT_EQ(count_streamed(other, 1000, 300, 100), 1000 - StoreTrial::kWarmUp - 4 * StoreTrial::kTries);
}

/// The first operations find memory that was never touched, and caches that the other kind of stores left behind.
TEST(StoreTrial, FirstTimesDoNotCount) {
  StoreTrial trial;
  bool before = false;
  int since = 0;
  for (std::uint32_t i = 0; i < StoreTrial::kPeriod; ++i) {
    const bool streams = trial.streams(kBytes);
    since = streams == before ? since + 1 : 0;
    before = streams;
    const std::uint64_t settled = streams ? 150 : 100;
    trial.took(since < 2 ? (streams ? 90 : 1000) : settled, streams);
  }
  EXPECT_FALSE(trial.streams(kBytes));
}

TEST(StoreTrial, ALittleQuickerIsNotEnough) {
  StoreTrial trial;
  count_streamed(trial, 100, 100, 95);
  EXPECT_FALSE(trial.streams(kBytes));
}

TEST(StoreTrial, SmallOperationsNeverStream) {
  StoreTrial trial;
  for (int i = 0; i < 1000; ++i) {
    EXPECT_FALSE(trial.streams(StoreTrial::kFrom - 1));
    trial.took(100, false);
  }
}

TEST(StoreTrial, NoticesWhenItChanges) {
  StoreTrial trial;
  count_streamed(trial, 500, 100, 300);
  count_streamed(trial, 2 * StoreTrial::kPeriod, 1000, 200);
  EXPECT_EQ(count_streamed(trial, 100, 1000, 200), 100);
  count_streamed(trial, 2 * StoreTrial::kPeriod, 50,
                 199);  // the one in use is as it was: found only by the usual trial
  count_streamed(trial, 16 * StoreTrial::kPeriod, 50, 199);
  EXPECT_EQ(count_streamed(trial, 100, 50, 199), 0);
}

TEST(StoreTrial, TriesSeldomWhenNothingChanges) {
  StoreTrial trial;
  EXPECT_LE(count_streamed(trial, 100'000, 100, 600), 5 * (5 + 100'000 / 2048));
}

TEST(StoreTrial, EachSizeHasItsOwn) {
  StoreTrial trial;
  for (int i = 0; i < 100; ++i) {
    const bool small = trial.streams(kBytes);
    trial.took(small ? 300 : 100, small);
    const bool large = trial.streams(32 * kBytes);
    trial.took(large ? 100 : 300, large);
  }
  EXPECT_FALSE(trial.streams(kBytes));
  EXPECT_TRUE(trial.streams(32 * kBytes));
}

/// Another rank decided: that says nothing of what this one would have chosen.
TEST(StoreTrial, WhatWasNotWantedDoesNotCount) {
  StoreTrial trial;
  count_streamed(trial, 100, 100, 300);
  for (int i = 0; i < 1000; ++i) {
    trial.streams(kBytes);
    trial.took(1000, true);
  }
  EXPECT_FALSE(trial.streams(kBytes));
}

}  // namespace
}  // namespace tutti::engine
