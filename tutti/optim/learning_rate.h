#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <torch/optim/optimizer.h>

namespace tutti {

/// How the learning rate follows the batch: as many times as large, the square root of that, or not at all.
enum class BatchScaling { none, linear, square_root };

/// How it falls after warm-up.
enum class Decay { none, linear, cosine };

/// The learning rate of every step, for a batch of another size than the one that a rate is known for. Pure: equal on
/// all ranks that have equal options. What cannot be (no rate, no batch, decay without an end) throws when a rate is
/// asked for.
///
///   const tutti::LearningRate rate{.base_rate = 0.1, .base_batch = 256, .batch = 256 * group.size()};
struct LearningRate {
  double base_rate = 0;         ///< what is right for base_batch; must be given
  std::int64_t base_batch = 1;  ///< samples in a step
  std::int64_t batch = 1;       ///< the same here: of all ranks and all passes together
  BatchScaling scaling = BatchScaling::linear;

  /// The rate rises by equal amounts in each of so many steps; the last of them is at the peak.
  std::int64_t warmup_steps = 0;
  /// Where it rises from, as a part of the peak; without, from base_rate.
  std::optional<double> warmup_from = std::nullopt;

  Decay decay = Decay::none;
  std::int64_t steps = 0;  ///< of the whole training with its warm-up; decay ends there
  double floor = 0;        ///< where decay ends, and what remains

  /// The rate after warm-up.
  double peak() const;
  /// Steps are numbered from 0.
  double at(std::int64_t step) const;
};

/// Sets an optimizer's learning rates, of whatever kind it is. Groups whose rates differ keep their ratio. One thread.
class LearningRateSchedule {
 public:
  /// Made while the optimizer's groups have the rates that were meant for `base_batch`: before the first step, and
  /// before a saved optimizer is loaded, which has other rates. Those of the group with ratio 1 are `base_rate`.
  LearningRateSchedule(const LearningRate& rate, const torch::optim::Optimizer& optimizer);

  /// Before each step. Groups that were added to the optimizer since have, by now, rates for `base_batch`, too.
  void apply(torch::optim::Optimizer& optimizer, std::int64_t step);

  const LearningRate& rate() const { return rate_; }

 private:
  void learn_ratios(const torch::optim::Optimizer& optimizer);

  LearningRate rate_;
  std::vector<double> ratios_;  // by group
};

}  // namespace tutti
