#pragma once

#include <cstdint>
#include <vector>

#include "tutti/observe/run_record.h"

namespace tutti::observe {

/// Times of ranks that arrive so many milliseconds after the step began: for tests only.
inline std::vector<RankTimes> arriving(const std::vector<double>& arrivals) {
  std::vector<RankTimes> ranks;
  for (const double at : arrivals) {
    ranks.push_back({.begin_ms = 1000.5,
                     .arrived_ms = 1000.5 + at,
                     .step = at + 4,
                     .forward = 3,
                     .backward = at - 3,
                     .exposed = 1,
                     .optimizer = 2,
                     .communication = 5,
                     .hidden = 4});
  }
  return ranks;
}

/// One rank of a step that began at `begin_ms`, with two buckets that overlap.
inline RankTimeline ranks_step(int rank, double begin_ms, const std::vector<std::int64_t>& bytes) {
  RankTimeline one{.rank = rank,
                   .phases = {{"forward", begin_ms, begin_ms + 3},
                              {"backward", begin_ms + 3, begin_ms + 10},
                              {"wait", begin_ms + 10, begin_ms + 11},
                              {"optimizer", begin_ms + 11, begin_ms + 13}},
                   .buckets = {}};
  double at = begin_ms + 5;
  for (const auto size : bytes) {
    one.buckets.push_back({.bytes = size, .ready_ms = at, .begin_ms = at + 0.25, .end_ms = at + 3});
    at += 2;
  }
  return one;
}

}  // namespace tutti::observe
