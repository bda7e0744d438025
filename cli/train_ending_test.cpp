#include "cli/train_ending.h"

#include <chrono>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "train/test_folder.h"

namespace tutti::cli {
namespace {

using namespace std::chrono_literals;

constexpr int kKilled = 137;

SavedTraining saved(std::int64_t step, std::chrono::seconds when) {
  return {.step = step, .written = std::filesystem::file_time_type(when)};
}

TEST(TrainEnding, AKilledRankLeavesWhatWasSaved) {
  EXPECT_EQ(
      how_to_go_on({.code = kKilled, .folder = "runs/a", .steps = 70, .save_interval = 7, .after = saved(21, 3s)}),
      "to go on after step 21 of 70: tutti train --config runs/a/train.json --resume");
  EXPECT_EQ(how_to_go_on({.code = kKilled, .folder = "runs/a", .steps = 70, .save_interval = 7}),
            "this run had not saved anything to go on from yet (it does every 7 steps: --save-interval)");
  EXPECT_EQ(how_to_go_on({.code = kKilled, .folder = "runs/a", .steps = 70}),
            "this run had not saved anything to go on from yet (it does at the end alone: --save-interval)");
}

TEST(TrainEnding, WhatAnEarlierRunSavedIsNotThisOnes) {
  TrainEnding ending{.code = kKilled, .folder = "a", .steps = 70, .save_interval = 7};
  ending.before = ending.after = saved(21, 3s);
  EXPECT_THAT(how_to_go_on(ending), testing::EndsWith("; what a holds is of an earlier one"));
  ending.resumed = true;
  EXPECT_THAT(how_to_go_on(ending), testing::StartsWith("to go on after step 21 of 70"));
  ending.resumed = false;
  ending.after = saved(21, 4s);  // as many steps, but saved anew
  EXPECT_THAT(how_to_go_on(ending), testing::StartsWith("to go on after step 21 of 70"));
}

TEST(TrainEnding, NothingWhereNothingHelps) {
  for (const int code : {0, 130, 143}) {
    EXPECT_EQ(how_to_go_on({.code = code, .steps = 70, .after = saved(21, 3s)}), "") << code;
  }
  EXPECT_EQ(how_to_go_on({.code = 1, .steps = 70}), "");
  EXPECT_EQ(how_to_go_on({.code = 1, .steps = 70, .resumed = true, .before = saved(3, 1s), .after = saved(3, 1s)}), "")
      << "it failed before the first save: so will the next";
  EXPECT_EQ(how_to_go_on({.code = kKilled, .steps = 70, .after = saved(70, 3s)}), "") << "all steps are made";
}

TEST(TrainEnding, AFailureOnTheWayLeavesWhatWasSaved) {
  EXPECT_NE(how_to_go_on({.code = 1, .steps = 70, .before = saved(21, 1s), .after = saved(28, 3s)}), "");
}

TEST(TrainEnding, FindsWhatWasSaved) {
  const train::TestFolder folder;
  EXPECT_EQ(find_saved_training(folder.path()), std::nullopt);
  folder.write("position.json", "{}");
  EXPECT_EQ(find_saved_training(folder.path()), std::nullopt);
  folder.write("position.json", R"({"step": 7, "sample": 3, "windows": 5})");
  EXPECT_EQ(find_saved_training(folder.path())->step, 7);
}

}  // namespace
}  // namespace tutti::cli
