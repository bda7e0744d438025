#pragma once
// Models whose training steps are timed: a GPT, a CNN with shortcuts, and a stack of many small layers.

#include <functional>
#include <memory>
#include <string>

#include <torch/torch.h>

namespace bench {

/// A model, and the loss of a batch that is the same in every step.
struct StepModel {
  std::shared_ptr<torch::nn::Module> module;
  std::function<torch::Tensor()> loss;
};

/// "gpt", "cnn" or "mlp"; made the same way wherever it is made. `seed` is of the batch, which for a GPT has so many
/// sequences.
StepModel make_step_model(const std::string& name, int seed, std::int64_t sequences = 4);

}  // namespace bench
