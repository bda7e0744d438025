#include "tutti/observe/run_record.h"

#include <chrono>
#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tutti/observe/test_run.h"

namespace tutti::observe {
namespace {

using nlohmann::json;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

TEST(RunRecord, IsEmptyButWellFormedBeforeTheFirstStep) {
  const auto run = RunRecord(3).to_json();
  EXPECT_EQ(run.at("format"), 1);
  EXPECT_EQ(run.at("ranks"), 3);
  EXPECT_EQ(run.at("steps").at("step"), json::array());
  EXPECT_EQ(run.at("timelines"), json::array());
  EXPECT_EQ(run.at("bucket_bytes"), json::array());
  EXPECT_EQ(run.at("stragglers").at("rank"), json({0, 1, 2}));
}

TEST(RunRecord, AStepIsTheMeanOfRanksAndTheLongestOfThem) {
  RunRecord record(3);
  auto ranks = arriving({7, 8, 9});
  ranks[1].optimizer = 5;
  record.step({.step = 1, .loss = 2.75, .gradient_norm = 1.5, .learning_rate = 6e-4, .tokens_per_s = 1003}, ranks);
  const auto steps = record.to_json().at("steps");
  EXPECT_EQ(steps, json({{"step", {1}},
                         {"loss", {2.75}},
                         {"gradient_norm", {1.5}},
                         {"learning_rate", {6e-4}},
                         {"tokens_per_s", {1003.0}},
                         {"step_ms", {13.0}},
                         {"forward_ms", {3.0}},
                         {"backward_ms", {5.0}},
                         {"exposed_ms", {1.0}},
                         {"optimizer_ms", {3.0}},
                         {"communication_ms", {5.0}},
                         {"hidden_ms", {4.0}}}));
}

TEST(RunRecord, WhatIsNotANumberIsNull) {
  RunRecord record(2);
  auto ranks = arriving({7, kNaN});
  ranks[0].step = ranks[1].step = kNaN;
  record.step({.step = 1, .loss = kNaN, .gradient_norm = std::numeric_limits<double>::infinity()}, ranks);
  record.evaluation(1, -std::numeric_limits<double>::infinity());
  record.timeline(1, {{.rank = 0, .phases = {{"forward", 3, kNaN}}, .buckets = {}}});
  record.set("configuration", {{"clip", kNaN}});
  const auto run = record.to_json();
  for (const auto* name : {"loss", "gradient_norm", "backward_ms", "step_ms"}) {
    EXPECT_TRUE(run.at("steps").at(name)[0].is_null()) << name;
  }
  EXPECT_EQ(run.at("steps").at("forward_ms")[0], 3.0);
  EXPECT_TRUE(run.at("evaluation").at("loss")[0].is_null());
  EXPECT_TRUE(run.at("timelines")[0].at("ranks")[0].at("phases").at("end_ms")[0].is_null());
  EXPECT_TRUE(run.at("configuration").at("clip").is_null());
  EXPECT_EQ(run.at("stragglers").at("times_last"), json({0, 0}));
}

TEST(RunRecord, BytesThatAreNoTextDoNotKeepItFromBeingWritten) {
  RunRecord record(1);
  record.set("sample", {{"text", "caf\xc3"}});  // a character that was cut in two
  record.event({.kind = "x", .text = "\xff"});
  EXPECT_NO_THROW((void)record.to_json().dump());
  EXPECT_EQ(record.to_json().at("sample").at("text"), "caf\xef\xbf\xbd");
}

TEST(RunRecord, RowsAreThinnedOutAndTotalsAreNot) {
  RunRecord record(3, {.steps = 10, .timelines = 4});
  for (int step = 1; step <= 1003; ++step) {
    record.step({.step = step, .loss = 1.0 / step}, arriving({7, 9, 8}));
    record.evaluation(step, 2.0 / step);
    record.timeline(step, {ranks_step(0, 50.0 * step, {16, 32})});
    record.traffic("all_reduce", "dp", 2, 1001);
  }
  const auto run = record.to_json();
  EXPECT_EQ(run.at("steps").at("step"), json({1, 129, 257, 385, 513, 641, 769, 897, 1003}));
  EXPECT_EQ(run.at("steps").at("loss")[1], 1.0 / 129);
  EXPECT_EQ(run.at("steps").at("hidden_ms").size(), 9);
  EXPECT_EQ(run.at("evaluation").at("step"), run.at("steps").at("step"));
  EXPECT_EQ(run.at("evaluation").at("loss")[8], 2.0 / 1003);
  EXPECT_EQ(run.at("timelines").size(), 3);
  EXPECT_EQ(run.at("timelines")[2].at("step"), 1003);
  EXPECT_EQ(run.at("traffic"),
            json({{"operation", {"all_reduce"}}, {"axis", {"dp"}}, {"calls", {2006}}, {"bytes", {1003 * 1001}}}));
  EXPECT_EQ(run.at("stragglers").at("times_last"), json({0, 1003, 0}));
  EXPECT_EQ(run.at("stragglers").at("late_ms")[1], 1003.0);
}

TEST(RunRecord, TheLastIsMeasuredAgainstTheMedianRank) {
  RunRecord four(4);
  four.step({.step = 1}, arriving({10, 11, 13, 20}));  // the median is 12
  four.step({.step = 2}, arriving({10, 10, 10.5, 10}));
  four.step({.step = 3}, arriving({10, 17, 13, 17}));  // two together: nobody was last
  const auto late = four.to_json().at("stragglers");
  EXPECT_EQ(late.at("rank"), json({0, 1, 2, 3}));
  EXPECT_EQ(late.at("times_last"), json({0, 0, 1, 1}));
  EXPECT_EQ(late.at("late_ms"), json({0.0, 0.0, 0.5, 8.0}));

  RunRecord three(3);
  three.step({.step = 1}, arriving({10, 19, 13}));
  three.step({.step = 2}, arriving({10, 13, 11}));
  EXPECT_EQ(three.to_json().at("stragglers").at("late_ms")[1], 8.0);
  EXPECT_EQ(three.to_json().at("stragglers").at("most_late_ms")[1], 6.0);
}

TEST(RunRecord, TimelinesBeginWithTheFirstRank) {
  RunRecord record(2);
  record.timeline(7, {ranks_step(0, 5000.25, {64}), ranks_step(1, 5000, {64})});
  const auto run = record.to_json();
  EXPECT_EQ(run.at("timelines")[0].at("step"), 7);
  const auto& ranks = run.at("timelines")[0].at("ranks");
  EXPECT_EQ(ranks[0].at("phases").at("name"), json({"forward", "backward", "wait", "optimizer"}));
  EXPECT_EQ(ranks[0].at("phases").at("begin_ms"), json({0.25, 3.25, 10.25, 11.25}));
  EXPECT_EQ(ranks[1].at("phases").at("end_ms"), json({3.0, 10.0, 11.0, 13.0}));
  EXPECT_EQ(ranks[1].at("buckets"),
            json({{"bucket", {0}}, {"ready_ms", {5.0}}, {"begin_ms", {5.25}}, {"end_ms", {8.0}}}));
}

TEST(RunRecord, BucketsThatAreTheSameShareNumbers) {
  RunRecord record(2);
  record.timeline(1, {ranks_step(0, 0, {64, 32}), ranks_step(1, 0, {64, 32})});
  record.timeline(2, {ranks_step(0, 0, {96}), ranks_step(1, 0, {96})});
  record.timeline(3, {ranks_step(0, 0, {64, 32}), ranks_step(1, 0, {})});
  const auto run = record.to_json();
  const auto numbers = [&](int timeline, int rank) {
    return run.at("timelines").at(timeline).at("ranks").at(rank).at("buckets").at("bucket");
  };
  EXPECT_EQ(run.at("bucket_bytes"), json({64, 32, 96}));
  EXPECT_EQ(numbers(0, 1), json({0, 1}));
  EXPECT_EQ(numbers(1, 0), json({2}));
  EXPECT_EQ(numbers(2, 0), json({0, 1}));
  EXPECT_EQ(numbers(2, 1), json::array());
}

TEST(RunRecord, LayoutsOfTimelinesThatAreGoneAreGone) {
  RunRecord record(1, {.timelines = 2});
  for (int step = 1; step <= 300; ++step) {
    record.timeline(step, {ranks_step(0, 0, {step, 8 * step})});
  }
  EXPECT_EQ(record.to_json().at("bucket_bytes"), json({1, 8, 300, 2400}));
}

TEST(RunRecord, EventsAreSaidOnceAndBounded) {
  RunRecord record(2, {.events = 3});
  for (int time = 0; time < 5; ++time) {
    record.event({.step = 120, .rank = 1, .kind = "late rank", .text = "again"});
  }
  for (int step = 1; step <= 9; ++step) {
    record.event({.step = step, .kind = "skipped step", .text = "infinite"});
  }
  const auto events = record.to_json().at("events");
  ASSERT_EQ(events.size(), 4);
  EXPECT_EQ(events[0], json({{"step", 120}, {"rank", 1}, {"kind", "late rank"}, {"text", "again"}}));
  EXPECT_EQ(events[1], json({{"step", 1}, {"kind", "skipped step"}, {"text", "infinite"}}));
  EXPECT_EQ(events[3], json({{"kind", "more events"}, {"text", "7 more were not kept."}}));
}

TEST(RunRecord, MemoryIsTheMostOfEachRank) {
  RunRecord record(2);
  record.memory("parameters", {100, 200});
  record.memory("activations", {7, 9});
  record.memory("activations", {9, 8});
  record.resident({1001, 1000});
  record.resident({1000, 1003});
  EXPECT_EQ(record.to_json().at("memory"), json({{"kind", {"parameters", "activations"}},
                                                 {"bytes", {{100, 200}, {9, 9}}},
                                                 {"resident_bytes", {1001, 1003}}}));
}

TEST(RunRecord, FieldsAreAsTheyWereSetAndDoNotReplaceTables) {
  RunRecord record(1);
  record.set("name", "nano");
  record.set("mesh", {{{"axis", "dp"}, {"size", 1}}});
  record.set("steps", 5);
  const auto run = record.to_json();
  EXPECT_EQ(run.at("name"), "nano");
  EXPECT_EQ(run.at("mesh"), json::parse(R"([{"axis": "dp", "size": 1}])"));
  EXPECT_TRUE(run.at("steps").is_object());
}

std::vector<int> wanted(int steps) {
  std::vector<int> all;
  for (int step = 1; step <= steps; ++step) {
    if (wants_timeline(step, steps)) {
      all.push_back(step);
    }
  }
  return all;
}

TEST(WantsTimeline, TheFirstSomeSpreadAndTheLast) {
  EXPECT_THAT(wanted(1), testing::ElementsAre(1));
  EXPECT_THAT(wanted(5), testing::ElementsAre(1, 2, 3, 4, 5));
  for (const int steps : {19, 20, 21, 200, 1003, 99'991}) {
    const auto all = wanted(steps);
    EXPECT_LE(all.size(), RecordLimits{}.timelines);
    EXPECT_GE(all.size(), std::min(steps, 20));
    EXPECT_EQ(all.back(), steps);
    EXPECT_EQ(all[2], 3);
    for (std::size_t i = 3; i + 1 < all.size(); ++i) {
      EXPECT_NEAR(all[i + 1] - all[i], steps / 20.0, 1.0) << steps;
    }
  }
  EXPECT_TRUE(wants_timeline(2, 0));
  EXPECT_FALSE(wants_timeline(99, 0));
  EXPECT_TRUE(wants_timeline(700, -1));
}

/// The best of several rounds: what others do on the machine meanwhile is not its cost.
TEST(RunRecord, AStepCostsNextToNothing) {
  using Clock = std::chrono::steady_clock;
  RunRecord record(4);
  const auto ranks = arriving({7, 9, 8, 11});
  constexpr int kSteps = 5000;
  double best_us = 1e9;
  std::int64_t step = 0;
  for (int round = 0; round < 9; ++round) {
    const auto begin = Clock::now();
    for (int i = 0; i < kSteps; ++i) {
      record.step({.step = ++step, .loss = 1.5}, ranks);
    }
    const std::chrono::duration<double, std::micro> took = Clock::now() - begin;
    best_us = std::min(best_us, took.count() / kSteps);
  }
  RecordProperty("step_us", std::to_string(best_us));
  EXPECT_LT(best_us, 20.0);  // it is promised to be below 2; sanitizers and debug builds are slower
}

}  // namespace
}  // namespace tutti::observe
