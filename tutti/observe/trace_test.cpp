#include "tutti/observe/trace.h"

#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tutti/observe/test_run.h"

namespace tutti::observe {
namespace {

using nlohmann::json;

json events_of(const json& run) { return trace_of(run).value().at("traceEvents"); }

/// A thread of a process by what people see.
using Thread = std::pair<std::string, std::string>;

std::map<Thread, std::vector<json>> by_thread(const json& events) {
  std::map<int, std::string> processes;
  std::map<std::pair<int, int>, std::string> threads;
  for (const auto& event : events) {
    if (event.at("name") == "process_name") {
      processes[event.at("pid")] = event.at("args").at("name");
    } else if (event.at("name") == "thread_name") {
      threads[{event.at("pid"), event.at("tid")}] = event.at("args").at("name");
    }
  }
  std::map<Thread, std::vector<json>> all;
  for (const auto& event : events) {
    if (event.at("ph") == "X") {
      all[{processes.at(event.at("pid")), threads.at({event.at("pid"), event.at("tid")})}].push_back(event);
    }
  }
  return all;
}

json two_ranks() {
  RunRecord record(2);
  record.timeline(3, {ranks_step(0, 100, {64, 32, 16}), ranks_step(1, 100.5, {64, 32, 16})});
  record.timeline(9, {ranks_step(0, 700, {64, 32, 16}), ranks_step(1, 701, {64, 32, 16})});
  return record.to_json();
}

TEST(Trace, PhasesAreInMicroseconds) {
  const auto phases = by_thread(events_of(two_ranks())).at({"rank 1", "computation"});
  ASSERT_EQ(phases.size(), 8);
  EXPECT_EQ(phases[1].at("name"), "backward");
  EXPECT_EQ(phases[1].at("ts"), 3500);
  EXPECT_EQ(phases[1].at("dur"), 7000);
}

TEST(Trace, StepsFollowEachOtherWithAGap) {
  const auto threads = by_thread(events_of(two_ranks()));
  const auto& steps = threads.at({"steps", "recorded steps"});
  ASSERT_EQ(steps.size(), 2);
  EXPECT_EQ(steps[0].at("name"), "step 3");
  EXPECT_EQ(steps[0].at("ts"), 0);
  EXPECT_EQ(steps[0].at("dur"), 13'500);
  EXPECT_EQ(steps[1].at("name"), "step 9");
  EXPECT_EQ(steps[1].at("ts"), 14'500);
  EXPECT_EQ(threads.at({"rank 1", "computation"})[4].at("ts"), 15'500) << "a millisecond after the first rank";
}

TEST(Trace, BucketsThatOverlapLieInDifferentThreads) {
  const auto threads = by_thread(events_of(two_ranks()));
  const auto& first = threads.at({"rank 0", "in flight 1"});
  const auto& second = threads.at({"rank 0", "in flight 2"});
  ASSERT_EQ(first.size(), 4);  // the first and the third of two steps
  ASSERT_EQ(second.size(), 2);
  EXPECT_EQ(threads.count({"rank 0", "in flight 3"}), 0);
  EXPECT_EQ(first[0].at("name"), "bucket 0");
  EXPECT_EQ(second[0].at("name"), "bucket 1");
  EXPECT_EQ(second[0].at("args"), json({{"bytes", 32}, {"waited_ms", 0.25}}));
  for (const auto& [thread, events] : threads) {
    double free_at = 0;
    for (const auto& event : events) {
      EXPECT_GE(event.at("ts").get<double>(), free_at) << thread.first << ", " << thread.second;
      free_at = event.at("ts").get<double>() + event.at("dur").get<double>();
    }
  }
}

TEST(Trace, WithoutTimelinesThereIsNone) {
  for (const auto& run : {RunRecord(2).to_json(), json::object(), json(5), json::array({1})}) {
    const auto trace = trace_of(run);
    ASSERT_FALSE(trace.ok());
    EXPECT_THAT(trace.error().message, testing::HasSubstr("has no timelines"));
  }
}

TEST(Trace, WhatIsNoneIsLeftOut) {
  const auto events = events_of(json::parse(R"({"bucket_bytes": "many", "timelines": [
    5, {"step": "x", "ranks": []}, {"step": 1}, {"step": 2, "ranks": [7, {"rank": 9223372036854775807, "phases": [], "buckets": 1}]},
    {"step": 3, "ranks": [{"rank": 0,
      "phases": {"name": ["forward", 2, "wait", "late"], "begin_ms": [0, 1, 5], "end_ms": [3, 2, 4, 9]},
      "buckets": {"bucket": [0, -7, "x", 9], "begin_ms": [1, 2, 3, null], "end_ms": [2, 3, 4, 5]}}]}]})"));
  std::vector<std::string> names;
  for (const auto& event : events) {
    if (event.at("ph") == "X") {
      names.push_back(event.at("name"));
    }
  }
  EXPECT_THAT(names, testing::ElementsAre("step 2", "step 3", "forward", "bucket 0", "bucket -7"));
}

}  // namespace
}  // namespace tutti::observe
