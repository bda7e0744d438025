#pragma once
// What optimizers have in common that measure each layer's step by its weights.

#include <cstdint>
#include <limits>
#include <memory>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/optim/optimizer.h>

namespace tutti {

/// Some of a group's parameters.
enum class Parameters : std::int64_t {
  none,
  matrices,  ///< those of two dimensions and more: weights, but neither biases nor the scales of norms
  all,
};

namespace optim {

bool includes(Parameters some, const at::Tensor& parameter);

struct TrustBounds {
  double smallest = 0;
  double largest = std::numeric_limits<double>::infinity();
};

/// Norm of the weights by norm of the step, within bounds. 1 where one of them is zero, since then nothing can be said
/// of the other; what is not a number stays none.
double trust_ratio(double weights, double step, const TrustBounds& bounds);

/// The Euclidean norm, added up in float32 at least.
double norm_of(const at::Tensor& tensor);

/// A complex tensor as pairs of real numbers, others as they are.
at::Tensor as_real(const at::Tensor& tensor);

/// Throws invalid_argument with the optimizer's name before the sentence.
void check_option(bool condition, std::string_view optimizer, std::string_view sentence);

/// What kind of optimizer it is.
struct OptimizerKind {
  const char* name;
  /// Throws when options are of another optimizer, or cannot be.
  void (*check)(const torch::optim::OptimizerOptions& options);
};

/// Steps parameter by parameter. One thread at a time.
class LayerwiseOptimizer : public torch::optim::Optimizer {
 public:
  /// What the group says holds as it is. LibTorch's function of this name, which is not virtual, is for the options of
  /// its own optimizers: called through a torch::optim::Optimizer&, it puts the defaults in place of ours.
  void add_param_group(const torch::optim::OptimizerParamGroup& group);

  /// Throws when a gradient is sparse, before anything changes. Parameters without one are left alone.
  at::Tensor step(LossClosure closure = nullptr) override;

 protected:
  LayerwiseOptimizer(const OptimizerKind& kind, const std::vector<torch::optim::OptimizerParamGroup>& groups,
                     std::unique_ptr<torch::optim::OptimizerOptions> defaults);

  /// One step of a parameter that has a dense gradient. Gradients are not recorded.
  virtual void update(const at::Tensor& parameter, const torch::optim::OptimizerOptions& options) = 0;

 private:
  OptimizerKind kind_;
};

}  // namespace optim
}  // namespace tutti
