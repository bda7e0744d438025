#pragma once

#include <cstdint>
#include <limits>
#include <tuple>
#include <utility>
#include <vector>

#include <torch/optim/optimizer.h>
#include <torch/serialize/archive.h>

#include "tutti/optim/layerwise.h"

namespace tutti {

/// Set as LibTorch's own: LambOptions(0.002).weight_decay(0.01). Those of a group hold as they are; what they leave out
/// is as here, not as in the optimizer's.
struct LambOptions : torch::optim::OptimizerCloneableOptions<LambOptions> {
  using Betas = std::tuple<double, double>;

  LambOptions(double rate = 1e-3) : lr_(rate) {}

  TORCH_ARG(double, lr);
  TORCH_ARG(Betas, betas) = Betas(0.9, 0.999);
  TORCH_ARG(double, eps) = 1e-6;
  TORCH_ARG(double, weight_decay) = 1e-2;
  /// Whether averages of few gradients are made larger, by what they lack.
  TORCH_ARG(bool, bias_correction) = true;
  /// Bounds of the trust ratio.
  TORCH_ARG(double, min_trust) = 0;
  TORCH_ARG(double, max_trust) = std::numeric_limits<double>::infinity();
  /// Whose steps are measured by their weights; the others' are those of AdamW.
  TORCH_ARG(Parameters, adapt) = Parameters::matrices;
  /// Who gets weight decay.
  TORCH_ARG(Parameters, decay) = Parameters::matrices;

 public:
  void serialize(torch::serialize::InputArchive& archive) override;
  void serialize(torch::serialize::OutputArchive& archive) const override;
  double get_lr() const override { return lr(); }
  void set_lr(double rate) override { lr(rate); }
};

struct LambParamState : torch::optim::OptimizerCloneableParamState<LambParamState> {
  TORCH_ARG(std::int64_t, step) = 0;
  TORCH_ARG(at::Tensor, exp_avg);
  TORCH_ARG(at::Tensor, exp_avg_sq);

 public:
  void serialize(torch::serialize::InputArchive& archive) override;
  void serialize(torch::serialize::OutputArchive& archive) const override;
};

/// AdamW, where each layer's step is as long as its weights (You et al. 2019):
///
///   m = beta1 m + (1 - beta1) g,   s = beta2 s + (1 - beta2) g g,   both corrected for their bias
///   u = m / (sqrt(s) + eps) + weight_decay w,   w = w - lr |w| / |u| u
///
/// Complex parameters count as pairs of real ones. Sparse gradients are refused before anything changes. Parameters in
/// bfloat16 or float16 want MasterWeights. One thread at a time.
class Lamb : public optim::LayerwiseOptimizer {
 public:
  explicit Lamb(const std::vector<torch::optim::OptimizerParamGroup>& groups, const LambOptions& defaults = {});
  explicit Lamb(std::vector<at::Tensor> parameters, const LambOptions& defaults = {})
      : Lamb(std::vector<torch::optim::OptimizerParamGroup>{std::move(parameters)}, defaults) {}

  void save(torch::serialize::OutputArchive& archive) const override;
  void load(torch::serialize::InputArchive& archive) override;

 private:
  void update(const at::Tensor& parameter, const torch::optim::OptimizerOptions& group_options) override;
};

}  // namespace tutti
