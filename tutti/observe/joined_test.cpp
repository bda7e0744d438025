#include "tutti/observe/joined.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tutti/observe/test_run.h"

namespace tutti::observe {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;

/// Steps `first` to `last` of a run of two ranks, of which the second is always late.
json recorded(std::int64_t first, std::int64_t last, const std::vector<std::int64_t>& buckets) {
  RunRecord record(2);
  for (auto step = first; step <= last; ++step) {
    record.step({.step = step, .loss = 10.0 / static_cast<double>(step)}, arriving({5, 7}));
    record.traffic("all_reduce", "dp", 2, 100);
  }
  record.evaluation(last, 1.5);
  record.timeline(last, {ranks_step(0, 100, buckets), ranks_step(1, 101, buckets)});
  record.event({.step = last, .rank = 1, .kind = "late rank", .text = "rank 1 is late"});
  record.set("duration_s", 10);
  record.set("started", "at " + std::to_string(first));
  record.set("status", first == 1 ? "interrupted" : "finished");
  return record.to_json();
}

TEST(Joined, OneRunOfTwoParts) {
  const auto run = joined(recorded(1, 4, {8, 9}), recorded(5, 6, {7}));
  EXPECT_THAT(run["steps"]["step"], ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_EQ(run["steps"]["loss"][0], 10.0);
  EXPECT_EQ(run["steps"]["forward_ms"].size(), 6U);
  EXPECT_THAT(run["evaluation"]["step"], ElementsAre(4, 6));
  EXPECT_EQ(run["traffic"]["calls"], json::array({12}));
  EXPECT_EQ(run["traffic"]["bytes"], json::array({600}));
  EXPECT_EQ(run["stragglers"]["times_last"], json::array({0, 6}));
  EXPECT_EQ(run["duration_s"], 20);
  EXPECT_EQ(run["started"], "at 1");
  EXPECT_EQ(run["status"], "finished");
  EXPECT_EQ(run["events"].size(), 2U);
  // A bucket's number is its place among all.
  EXPECT_THAT(run["bucket_bytes"], ElementsAre(8, 9, 7));
  ASSERT_EQ(run["timelines"].size(), 2U);
  EXPECT_THAT(run["timelines"][0]["ranks"][0]["buckets"]["bucket"], ElementsAre(0, 1));
  EXPECT_THAT(run["timelines"][1]["ranks"][1]["buckets"]["bucket"], ElementsAre(2));
}

TEST(Joined, StepsThatWereMadeAgainCountOnce) {
  const auto run = joined(recorded(1, 4, {8}), recorded(3, 6, {8}));
  EXPECT_THAT(run["steps"]["step"], ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(run["evaluation"]["step"], ElementsAre(6));
  EXPECT_EQ(run["timelines"].size(), 1U);
  EXPECT_EQ(run["events"].size(), 1U);
}

TEST(Joined, StaysWithinItsLimits) {
  const auto run = joined(recorded(1, 40, {8}), recorded(41, 60, {8}), {.steps = 30, .timelines = 2, .events = 1});
  EXPECT_LE(run["steps"]["step"].size(), 30U);
  EXPECT_EQ(run["steps"]["step"].back(), 60) << "the newest stays";
  EXPECT_EQ(run["steps"]["step"].size(), run["steps"]["loss"].size());
  EXPECT_EQ(run["events"].size(), 1U);
}

TEST(Joined, OtherRanksHaveOtherStragglers) {
  auto before = recorded(1, 4, {8});
  before["ranks"] = 3;
  EXPECT_EQ(joined(before, recorded(5, 6, {8}))["stragglers"]["times_last"], json::array({0, 2}));
}

TEST(Joined, WhatIsNoRecordIsLeftOut) {
  const auto now = recorded(5, 6, {7});
  EXPECT_EQ(joined(json::object(), now), now);
  EXPECT_EQ(joined(json(3), now), now);
  auto short_column = recorded(1, 4, {8});
  short_column["steps"]["loss"].erase(3);
  EXPECT_EQ(joined(short_column, now), now);
  auto strange = recorded(1, 4, {8});
  strange["traffic"]["calls"] = json::array({"many"});
  EXPECT_EQ(joined(strange, now), now);
}

}  // namespace
}  // namespace tutti::observe
