#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/optim/optimizer.h>
#include <torch/serialize/archive.h>

#include "tutti/comm/group.h"

namespace tutti {

struct LossScaleOptions {
  double initial = 32768;  ///< the largest power of two that float16 has
  double growth = 2;       ///< after growth_interval steps in a row that were taken
  double backoff = 0.5;    ///< after a step that was not
  std::int64_t growth_interval = 2000;
  double smallest = 1;
  double largest = 16777216;
  /// So many steps in a row that were not taken are not the scale's fault: an error.
  std::int64_t patience = 100;
};

/// Keeps small gradients from vanishing in float16: the loss is multiplied by a scale before backward, gradients are
/// divided by it before the step. One with infinities or NaNs is not taken, by any rank, and the scale shrinks; when
/// all goes well for long, it grows.
///
///   scale.scale(loss).backward();
///   masters.step(optimizer, scale);    // with MasterWeights; without, scale.step(optimizer)
///
/// bfloat16 needs none of it. All ranks of the group make the same calls in the same order, so that their scales stay
/// equal; without a group, this rank is alone. One thread at a time.
class LossScale {
 public:
  explicit LossScale(std::optional<Group> group = std::nullopt, const LossScaleOptions& options = {});

  /// The loss to call backward on, in float32 at least. Losses whose gradients add up all have the same scale: it
  /// changes in `unscale` alone.
  at::Tensor scale(const at::Tensor& loss) const;

  /// Divides gradients by the scale, in place, and tells whether to take the step: when they are finite on all ranks.
  /// Once for each step, with all parameters; gradients may be clipped afterwards. Blocks until all ranks are here.
  /// Throws, on all ranks, when patience is at its end.
  [[nodiscard]] bool unscale(const std::vector<at::Tensor>& parameters);

  /// `unscale` for all of an optimizer's parameters, and its step if all agree. Whether it was taken.
  bool step(torch::optim::Optimizer& optimizer);

  double value() const { return scale_; }

  void save(torch::serialize::OutputArchive& archive) const;
  void load(torch::serialize::InputArchive& archive);

 private:
  bool finite_everywhere(bool finite_here, const at::Device& device) const;
  void adjust(bool taken);

  std::optional<Group> group_;
  LossScaleOptions options_;
  double scale_;
  std::int64_t taken_ = 0;    // steps in a row
  std::int64_t skipped_ = 0;  // the same
};

/// For torch::save and torch::load.
inline torch::serialize::OutputArchive& operator<<(torch::serialize::OutputArchive& archive, const LossScale& scale) {
  scale.save(archive);
  return archive;
}
inline torch::serialize::InputArchive& operator>>(torch::serialize::InputArchive& archive, LossScale& scale) {
  scale.load(archive);
  return archive;
}

}  // namespace tutti
