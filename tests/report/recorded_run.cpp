// Writes what a recorder keeps of a run that was not: recorded_run FILE. report/recorded_test.py looks at its page.
#include <cmath>
#include <cstdio>
#include <limits>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tutti/base/whole_file.h"
#include "tutti/observe/run_record.h"

namespace {

using tutti::observe::RankTimeline;
using tutti::observe::RankTimes;

constexpr int kRanks = 3;
constexpr int kSteps = 301;
constexpr int kLateRank = 1;

/// Rank 1 is late by a millisecond; clocks began long ago.
double begin_of(int rank, int step) { return 8e6 + 40.0 * step + 0.125 * rank; }
double backward_end(int rank, int step) { return begin_of(rank, step) + 20 + (rank == kLateRank ? 1 : 0); }

RankTimes times_of(int rank, int step) {
  const double waited = backward_end(kLateRank, step) + 2 - backward_end(rank, step);
  return {.begin_ms = begin_of(rank, step),
          .arrived_ms = backward_end(rank, step),
          .step = 26 + 0.01 * step,
          .forward = 6,
          .backward = 14 + (rank == kLateRank ? 1.0 : 0.0),
          .exposed = waited,
          .optimizer = 3,
          .communication = 9,
          .hidden = 9 - waited};
}

/// After half of the run the buckets are others.
RankTimeline timeline_of(int rank, int step) {
  const double begin = begin_of(rank, step);
  const double end = backward_end(rank, step);
  const double reduced = backward_end(kLateRank, step) + 2;
  RankTimeline timeline{.rank = rank,
                        .phases = {{"data", begin, begin + 0.5},
                                   {"forward", begin + 0.5, begin + 6},
                                   {"backward", begin + 6, end},
                                   {"wait", end, reduced},
                                   {"optimizer", reduced, reduced + 3}},
                        .buckets = {}};
  const int buckets = step < kSteps / 2 ? 3 : 5;
  for (int i = 1; i <= buckets; ++i) {
    const double ready = begin + 6 + (end - begin - 6) * i / buckets;
    timeline.buckets.push_back({.bytes = 1'000'003 + 4 * i,
                                .ready_ms = ready,
                                .begin_ms = ready + 0.1,
                                .end_ms = i == buckets ? reduced : ready + 4.5});
  }
  return timeline;
}

void train(tutti::observe::RunRecord& record) {
  for (int step = 1; step <= kSteps; ++step) {
    std::vector<RankTimes> times;
    std::vector<RankTimeline> timelines;
    for (int rank = 0; rank < kRanks; ++rank) {
      times.push_back(times_of(rank, step));
      timelines.push_back(timeline_of(rank, step));
    }
    const double loss = 5.0 / std::sqrt(step);
    record.step({.step = step,
                 .loss = step % 50 == 7 ? std::numeric_limits<double>::quiet_NaN() : loss,
                 .gradient_norm = 1 + loss / 3,
                 .learning_rate = 6e-4 * std::min(1.0, step / 30.0),
                 .tokens_per_s = 100'003.0 + step},
                times);
    if (tutti::observe::wants_timeline(step, kSteps)) {
      record.timeline(step, std::move(timelines));
    }
    if (step % 20 == 0) {
      record.evaluation(step, 1.03 * loss);
    }
    record.traffic("all_reduce", "dp", 5, 5'000'075);
  }
}

}  // namespace

int main(int count, char** values) {
  if (count != 2) {
    std::fputs("usage: recorded_run FILE\n", stderr);
    return 2;
  }
  tutti::observe::RunRecord record(kRanks, {.steps = 100});
  train(record);
  record.traffic("broadcast", "world", 1, 5'000'075);
  record.memory("parameters", {5'000'075, 5'000'075, 5'000'075});
  record.memory("gradients", {5'000'075, 5'000'075, 5'000'079});
  record.resident({90'000'001, 91'000'003, 92'000'005});
  record.event(
      {.step = 120, .rank = kLateRank, .kind = "late rank", .text = "</script><script>window.hacked = 1</script>"});
  record.set("name", "recorded dp=3");
  record.set("started", "2026-11-16T09:26:53Z");
  record.set("status", "finished");
  record.set("duration_s", 12.5);
  record.set("mesh", {{{"axis", "dp"}, {"size", kRanks}}});
  record.set("configuration", {{"model", {{"layers", 6}, {"preset", "nano"}}}, {"seed", 7}});
  record.set("machine", {{"host", "node-17"}, {"memory_bytes", 64LL << 30}});
  record.set("sample", {{"prompt", "class "}, {"text", "Bucket {\n caf\xc3"}});  // cut inside of a character
  if (const auto written = tutti::write_whole(values[1], record.to_json().dump()); !written) {
    fmt::print(stderr, "recorded_run: {}\n", written.error().message);
    return 1;
  }
  return 0;
}
