#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace tutti::observe {

/// Recorded steps as a run's JSON has them; times are milliseconds from the step's beginning. A file may hold anything:
/// rows whose fields are missing or of another kind are left out.
struct ReadPhase {
  std::string name;
  double begin_ms = 0;
  double end_ms = 0;
};

struct ReadBucket {
  std::int64_t bucket = 0;
  std::optional<std::int64_t> bytes;
  std::optional<double> ready_ms;
  double begin_ms = 0;
  double end_ms = 0;
};

struct ReadRank {
  std::int64_t rank = 0;
  std::vector<ReadPhase> phases;
  std::vector<ReadBucket> buckets;
};

struct ReadTimeline {
  std::int64_t step = 0;
  std::vector<ReadRank> ranks;
};

std::vector<ReadTimeline> read_timelines(const nlohmann::json& run);

}  // namespace tutti::observe
