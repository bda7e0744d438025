#pragma once

#include <torch/nn/modules/batchnorm.h>

#include "tutti/comm/group.h"

namespace tutti {

/// Makes every batch norm inside a module normalize by the mean and variance of the batches of all ranks together,
/// while it trains: forward and backward are those of one process with the whole batch, to rounding, however many
/// samples each rank has. The modules stay what they are, so that members of their type can be converted, too; later
/// clones of them are not. All ranks call it, with the same module, and from then on run the same batch norms in the
/// same order (so none may `join`). Gives how many there are. Throws, naming the first, where one has neither running
/// statistics nor weights: then there is nothing to know it by.
///
///   tutti::synchronize_batch_norm(*net, world.group());
std::size_t synchronize_batch_norm(torch::nn::Module& module, const Group& group);

/// Such a batch norm for new models: for inputs [batch, features, ...] of any number of dimensions.
class SyncBatchNormImpl : public torch::nn::BatchNormImplBase<2, SyncBatchNormImpl> {
 public:
  /// All ranks of the group make it.
  SyncBatchNormImpl(const torch::nn::BatchNormOptions& how, const Group& group);

  at::Tensor forward(const at::Tensor& input);

 protected:
  void _check_input_dim(const at::Tensor& input) override;

 private:
  Group group_;
};
TORCH_MODULE(SyncBatchNorm);

}  // namespace tutti
