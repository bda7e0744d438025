#pragma once

#include <cstdint>
#include <vector>

#include "tutti/verify/report.h"
#include "tutti/verify/roster.h"

namespace tutti::verifying {

/// Compares the parameters and buffers of ranks that should have the same, bit by bit, from step to step.
class StateWatch {
 public:
  /// All ranks of the group make it; `slices` are those that belong together. Buffers on request. The module stays.
  StateWatch(const torch::nn::Module& module, bool buffers, const Group& group, std::vector<std::vector<Rank>> slices);

  const Roster& parameters() const { return parameters_; }

  /// Before that step, or after the last. All ranks call it, and get the same.
  std::vector<Finding> compare(int step);

 private:
  using Hashes = std::vector<std::vector<std::uint64_t>>;  // by rank, by entry
  Hashes now() const;
  Finding judge(std::size_t entry, const std::vector<Rank>& odd, const Hashes& hashes, int step) const;

  const torch::nn::Module& module_;
  const Group group_;
  const std::vector<std::vector<Rank>> slices_;
  const Roster parameters_;
  const Roster buffers_;
  Hashes before_;
};

}  // namespace tutti::verifying
