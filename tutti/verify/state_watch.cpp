#include "tutti/verify/state_watch.h"

#include <algorithm>

#include "tutti/verify/exchange.h"
#include "tutti/verify/hash.h"

namespace tutti::verifying {

StateWatch::StateWatch(const torch::nn::Module& module, bool buffers, const Group& group,
                       std::vector<std::vector<Rank>> slices)
    : module_(module),
      group_(group),
      slices_(std::move(slices)),
      parameters_(parameters_of(module), group, slices_),
      buffers_(buffers ? buffers_of(module) : std::vector<NamedTensor>{}, group, slices_) {}

StateWatch::Hashes StateWatch::now() const {
  std::vector<std::uint64_t> own;
  const auto add = [&](const Roster& roster, const std::vector<NamedTensor>& tensors) {
    for (const auto& entry : roster.entries) {
      own.push_back(entry.place ? hash_of(tensors[*entry.place].tensor) : 0);
    }
  };
  add(parameters_, parameters_of(module_));
  add(buffers_, buffers_of(module_));
  return hashes_of_all(own, group_);
}

Finding StateWatch::judge(std::size_t entry, const std::vector<Rank>& odd, const Hashes& hashes, int step) const {
  const bool buffer = entry >= parameters_.entries.size();
  const auto& name =
      buffer ? buffers_.entries[entry - parameters_.entries.size()].name : parameters_.entries[entry].name;
  Finding finding{.step = step, .what = name, .blamed = odd};
  const auto unchanged = [&](Rank rank) { return before_[to_index(rank)][entry] == hashes[to_index(rank)][entry]; };
  if (buffer) {
    finding.cause = Cause::buffer_diverged;
  } else if (before_.empty()) {
    finding.cause = Cause::started_differently;
  } else {
    // Whoever did not move is at fault, even if most did not.
    std::vector<Rank> still;
    for (const auto& slice : slices_) {
      if (std::find(slice.begin(), slice.end(), odd[0]) != slice.end()) {
        std::copy_if(slice.begin(), slice.end(), std::back_inserter(still), unchanged);
      }
    }
    finding.cause = still.empty() ? Cause::parameter_diverged : Cause::step_skipped;
    finding.blamed = still.empty() ? odd : still;
  }
  return finding;
}

std::vector<Finding> StateWatch::compare(int step) {
  const auto hashes = now();
  std::vector<Finding> findings;
  const auto count = parameters_.entries.size() + buffers_.entries.size();
  for (std::size_t entry = 0; entry < count; ++entry) {
    for (const auto& slice : slices_) {
      std::vector<std::uint64_t> values;
      for (const auto rank : slice) {
        values.push_back(hashes[to_index(rank)][entry]);
      }
      std::vector<Rank> odd;
      for (const auto place : odd_ones(values)) {
        odd.push_back(slice[to_index(place)]);
      }
      if (2 * odd.size() >= slice.size()) {
        odd = slice;  // nobody can tell which of two are right
      }
      if (!odd.empty()) {
        findings.push_back(judge(entry, odd, hashes, step));
      }
    }
  }
  before_ = hashes;
  return findings;
}

}  // namespace tutti::verifying
