#pragma once

#include <limits>
#include <utility>
#include <vector>

#include <torch/optim/optimizer.h>
#include <torch/serialize/archive.h>

#include "tutti/optim/layerwise.h"

namespace tutti {

/// Set as LibTorch's own: LarsOptions(0.1).momentum(0.9). Those of a group hold as they are; what they leave out is as
/// here, not as in the optimizer's.
struct LarsOptions : torch::optim::OptimizerCloneableOptions<LarsOptions> {
  LarsOptions(double rate) : lr_(rate) {}

  TORCH_ARG(double, lr);
  TORCH_ARG(double, momentum) = 0.9;
  TORCH_ARG(bool, nesterov) = false;
  TORCH_ARG(double, weight_decay) = 0;
  /// The part of its weights' norm that a layer's step has before lr.
  TORCH_ARG(double, trust_coefficient) = 0.001;
  /// Bounds of the trust ratio.
  TORCH_ARG(double, min_trust) = 0;
  TORCH_ARG(double, max_trust) = std::numeric_limits<double>::infinity();
  /// Whose steps are measured by their weights; the others' are those of SGD.
  TORCH_ARG(Parameters, adapt) = Parameters::matrices;
  /// Who gets weight decay.
  TORCH_ARG(Parameters, decay) = Parameters::matrices;

 public:
  void serialize(torch::serialize::InputArchive& archive) override;
  void serialize(torch::serialize::OutputArchive& archive) const override;
  double get_lr() const override { return lr(); }
  void set_lr(double rate) override { lr(rate); }
};

struct LarsParamState : torch::optim::OptimizerCloneableParamState<LarsParamState> {
  TORCH_ARG(at::Tensor, momentum_buffer);

 public:
  void serialize(torch::serialize::InputArchive& archive) override;
  void serialize(torch::serialize::OutputArchive& archive) const override;
};

/// SGD with momentum, where each layer's step is as long as its weights allow (You, Gitman, Ginsburg 2017):
///
///   trust = trust_coefficient |w| / (|g| + weight_decay |w|)
///   v = momentum v + trust (g + weight_decay w),   w = w - lr v
///
/// The rate stands outside of v, as in LibTorch's SGD, so that one that changes (warm-up) holds for all of v at once.
/// Complex parameters count as pairs of real ones. Sparse gradients are refused before anything changes. Parameters in
/// bfloat16 or float16 want MasterWeights. One thread at a time.
class Lars : public optim::LayerwiseOptimizer {
 public:
  explicit Lars(const std::vector<torch::optim::OptimizerParamGroup>& groups, const LarsOptions& defaults);
  explicit Lars(std::vector<at::Tensor> parameters, const LarsOptions& defaults)
      : Lars(std::vector<torch::optim::OptimizerParamGroup>{std::move(parameters)}, defaults) {}

  void save(torch::serialize::OutputArchive& archive) const override;
  void load(torch::serialize::InputArchive& archive) override;

 private:
  void update(const at::Tensor& parameter, const torch::optim::OptimizerOptions& group_options) override;
};

}  // namespace tutti
