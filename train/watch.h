#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "train/once.h"
#include "train/step_news.h"
#include "tutti/observe/run_record.h"

namespace tutti::train {

/// Notices what goes wrong with a rank, and says each kind once for each. One thread, of one rank, which sees the news
/// of all.
class Watch {
 public:
  explicit Watch(int ranks) : late_(static_cast<std::size_t>(ranks)) {}

  /// What is new in this step. A rank is late when for several steps its gradients are the last, by more than half of
  /// the time that the median rank takes without waiting. A norm that is no number, where all losses are numbers, is
  /// nobody's.
  std::vector<observe::RunEvent> step(std::int64_t step, std::span<const StepNews> ranks, double gradient_norm);

  /// A rank's weights differ from the others'; `why` is put in brackets. Nothing when that was said before.
  std::optional<observe::RunEvent> diverged(std::int64_t step, Rank rank, const std::string& why);

  /// Sentences for the end, on what came more than once.
  std::vector<std::string> counts() const { return once_.counts(); }

 private:
  void look_for_late(std::int64_t step, std::span<const StepNews> ranks, std::vector<observe::RunEvent>& events);

  Once once_;
  std::vector<int> late_;  // by rank: steps in a row
  bool norm_said_ = false;
};

}  // namespace tutti::train
