#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tutti/observe/run_record.h"

namespace tutti::observe {

/// Which rank was last, how often, and by how much: of every step. One thread.
class Stragglers {
 public:
  explicit Stragglers(int ranks);

  /// Who arrived after all others is counted; where several were last together, nobody is. Allocates nothing.
  void count(std::span<const RankTimes> ranks);
  nlohmann::json to_json() const;

 private:
  struct Late {
    std::int64_t times_last = 0;
    double late_ms = 0;  // behind the median rank, the sum
    double most_late_ms = 0;
  };
  std::vector<Late> late_;
  std::vector<double> arrivals_;  // of one step, for sorting
};

}  // namespace tutti::observe
