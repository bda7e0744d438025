#pragma once

#include <vector>

#include "tutti/observe/run_record.h"
#include "tutti/observe/thinning.h"

namespace tutti::observe {

/// Recorded steps, a bounded number. One thread.
class Timelines {
 public:
  explicit Timelines(std::size_t count) : kept_(count), thinning_(count) {}

  void add(std::int64_t step, std::vector<RankTimeline> ranks);
  /// Puts `timelines` and `bucket_bytes` into the run. A bucket's number is its place there. Ranks and steps whose
  /// buckets are the same share numbers; only what is kept has any.
  void put_into(nlohmann::json& run) const;

 private:
  struct Timeline {
    std::int64_t step = 0;
    std::vector<RankTimeline> ranks;
  };
  std::vector<Timeline> kept_;
  Thinning thinning_;
};

}  // namespace tutti::observe
