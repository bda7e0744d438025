#include "train/batches.h"

#include <algorithm>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::train {
namespace {

using testing::HasSubstr;
using Begins = std::vector<std::int64_t>;

Batches make(std::int64_t windows, const Batches::Options& options) {
  return Batches::make(Windows({{0, windows * 3 + 1}}, 3), options).value();
}

TEST(Windows, OverlapByOneByteAndKeepToTheirPiece) {
  const Windows windows({{0, 10}, {20, 23}, {30, 34}, {40, 43}, {50, 57}}, 3);
  Begins begins;
  for (std::int64_t i = 0; i < windows.count(); ++i) {
    begins.push_back(windows.begin(i));
  }
  EXPECT_EQ(begins, (Begins{0, 3, 6, 30, 50, 53}));
}

TEST(Windows, ThereMayBeNone) {
  EXPECT_EQ(Windows({}, 3).count(), 0);
  EXPECT_EQ(Windows({{5, 5}, {7, 10}}, 3).count(), 0) << "three bytes have no fourth to predict";
  EXPECT_TRUE(Windows({}, 3).some(5).empty());
}

TEST(Windows, SomeAreSpreadOverAll) {
  const Windows windows({{0, 101}}, 10);
  EXPECT_EQ(windows.some(3), (Begins{0, 40, 70}));
  EXPECT_EQ(windows.some(1000), (Begins{0, 10, 20, 30, 40, 50, 60, 70, 80, 90}));
}

TEST(Batches, AnEpochVisitsEveryWindowOnce) {
  const auto batches = make(35, {.batch = 7, .seed = 5});
  std::vector<Begins> epochs;
  for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
    auto& visited = epochs.emplace_back();
    for (std::int64_t step = 0; step < 5; ++step) {
      EXPECT_EQ(batches.epoch(epoch * 5 + step), epoch);
      const auto batch = batches.all(epoch * 5 + step);
      visited.insert(visited.end(), batch.begin(), batch.end());
    }
    EXPECT_EQ(std::set<std::int64_t>(visited.begin(), visited.end()).size(), 35U);
  }
  EXPECT_NE(epochs[0], epochs[1]);
  EXPECT_NE(epochs[1], epochs[2]);
}

TEST(Batches, GoAcrossTheEndOfAnEpoch) {
  const auto small = make(5, {.batch = 13, .seed = 5});  // more than two epochs in a batch
  Begins stream;
  for (std::int64_t step = 0; step < 5; ++step) {
    const auto batch = small.all(step);
    EXPECT_EQ(batch.size(), 13U);
    stream.insert(stream.end(), batch.begin(), batch.end());
  }
  for (std::size_t i = 0; i < stream.size(); i += 5) {
    auto epoch =
        Begins(stream.begin() + static_cast<std::ptrdiff_t>(i), stream.begin() + static_cast<std::ptrdiff_t>(i) + 5);
    std::sort(epoch.begin(), epoch.end());
    EXPECT_EQ(epoch, (Begins{0, 3, 6, 9, 12}));
  }
}

TEST(Batches, AreTheSameForAnyNumberOfRanksAndMicrobatches) {
  const auto batches = make(101, {.batch = 24, .seed = 9});
  for (std::int64_t step = 0; step < 11; ++step) {
    const auto all = batches.all(step);
    for (const int ranks : {1, 2, 3, 4, 7, 24, 29}) {
      for (const int microbatches : {1, 2, 5}) {
        Begins together;
        for (int m = 0; m < microbatches; ++m) {
          for (int r = 0; r < ranks; ++r) {
            const auto part =
                batches.part(step, {.rank = Rank{r}, .ranks = ranks, .microbatch = m, .microbatches = microbatches});
            EXPECT_NEAR(static_cast<double>(part.size()), 24.0 / (ranks * microbatches), 1);
            together.insert(together.end(), part.begin(), part.end());
          }
        }
        EXPECT_EQ(together, all);
      }
    }
  }
}

TEST(Batches, TheSeedDecidesTheOrder) {
  EXPECT_EQ(make(101, {.batch = 8, .seed = 1}).all(3), make(101, {.batch = 8, .seed = 1}).all(3));
  EXPECT_NE(make(101, {.batch = 8, .seed = 1}).all(3), make(101, {.batch = 8, .seed = 2}).all(3));
}

TEST(Batches, GoOnFromASavedPosition) {
  const auto whole = make(101, {.batch = 8, .seed = 1});
  const auto saved = whole.position(17);
  EXPECT_EQ(saved, (Position{.step = 17, .sample = 136, .windows = 101}));
  const auto rest = make(101, {.batch = 8, .seed = 1, .from = saved});
  EXPECT_EQ(rest.all(17), whole.all(17));
  EXPECT_EQ(rest.all(40), whole.all(40));
  EXPECT_EQ(rest.position(40), whole.position(40));
  // With half the batch, two steps see what one did.
  const auto halves = make(101, {.batch = 4, .seed = 1, .from = saved});
  auto two = halves.all(17);
  const auto second = halves.all(18);
  two.insert(two.end(), second.begin(), second.end());
  EXPECT_EQ(two, whole.all(17));
}

TEST(Batches, WhatCannotBeIsASentence) {
  EXPECT_THAT(Batches::make(Windows({{0, 3}}, 3), {}).error().message,
              HasSubstr("no stretch of 4 bytes, which is what a context of 3 needs"));
  EXPECT_THAT(Batches::make(Windows({{0, 10}}, 3), {.from = {.windows = 5}}).error().message,
              HasSubstr("has 3 windows of 3 tokens, and had 5 when"));
  EXPECT_FALSE(Batches::make(Windows({{0, 10}}, 3), {.batch = 0}).ok());
  EXPECT_FALSE(Batches::make(Windows({{0, 10}}, 3), {.from = {.sample = -1}}).ok());
}

}  // namespace
}  // namespace tutti::train
