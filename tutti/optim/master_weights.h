#pragma once

#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>
#include <torch/serialize/archive.h>

#include "tutti/optim/loss_scale.h"

namespace tutti {

/// Masters in float32 of a model's parameters in bfloat16 or float16, whose steps would be lost in rounding otherwise.
///
///   net->to(torch::kBFloat16);
///   tutti::MasterWeights masters(*net);
///   torch::optim::AdamW optimizer(masters.parameters());    // any optimizer
///   ...
///   masters.zero_grad();
///   loss_of(net, batch).backward();    // gradients are those of the model, averaged over ranks if it is DataParallel
///   masters.step(optimizer);
///
/// Masters are the truth: the model has what they round to, and they are never made from it again unless `reload` is
/// called. Parameters of other types are their own masters. Those that are not trained when this is made, or that come
/// twice, are left out. Holds the model's parameters. One thread at a time.
class MasterWeights {
 public:
  explicit MasterWeights(const torch::nn::Module& module) : MasterWeights(module.parameters()) {}
  explicit MasterWeights(const std::vector<at::Tensor>& parameters);
  MasterWeights(const MasterWeights&) = delete;
  MasterWeights& operator=(const MasterWeights&) = delete;
  MasterWeights(MasterWeights&&) = default;
  MasterWeights& operator=(MasterWeights&&) = default;
  ~MasterWeights() = default;

  /// What to build an optimizer over, in the order of the model's.
  const std::vector<at::Tensor>& parameters() const { return masters_; }
  /// The one of a model's parameter, for groups. Throws when there is none.
  const at::Tensor& of(const at::Tensor& parameter) const;

  /// The model's gradients become the masters'; where it has none, they have none.
  void take_gradients();
  /// The model gets what the masters round to.
  void give_weights();

  /// Takes gradients, steps, gives weights. A closure computes the model's loss and gradients, as often as the
  /// optimizer wants it.
  at::Tensor step(torch::optim::Optimizer& optimizer, const torch::optim::Optimizer::LossClosure& closure = nullptr);
  /// The same with gradients of a scaled loss, divided in float32. Whether the step was taken; all ranks agree.
  bool step(torch::optim::Optimizer& optimizer, LossScale& scale);

  /// Of the model and of the masters.
  void zero_grad(bool set_to_none = true);

  /// Masters from the model, after it was loaded or got another rank's weights. What was lost in rounding is gone.
  void reload();

  /// All masters that are no parameters of the model itself. `load` gives weights, too; it throws, and changes nothing,
  /// when they are of another model.
  void save(torch::serialize::OutputArchive& archive) const;
  void load(torch::serialize::InputArchive& archive);

 private:
  bool is_copy(std::size_t number) const { return !masters_[number].is_same(model_[number]); }

  std::vector<at::Tensor> model_;
  std::vector<at::Tensor> masters_;
};

/// For torch::save and torch::load.
inline torch::serialize::OutputArchive& operator<<(torch::serialize::OutputArchive& archive,
                                                   const MasterWeights& masters) {
  masters.save(archive);
  return archive;
}
inline torch::serialize::InputArchive& operator>>(torch::serialize::InputArchive& archive, MasterWeights& masters) {
  masters.load(archive);
  return archive;
}

}  // namespace tutti
