#include "train/optimizers.h"

#include <torch/torch.h>

#include "tutti/optim/lamb.h"

namespace tutti::train {
namespace {

constexpr double kEpsilon = 1e-8;

std::unique_ptr<torch::optim::Optimizer> make_adamw(const Config& config, const std::vector<at::Tensor>& parameters) {
  std::vector<at::Tensor> matrices;
  std::vector<at::Tensor> others;
  for (const auto& parameter : parameters) {
    (parameter.dim() >= 2 ? matrices : others).push_back(parameter);
  }
  const auto options = torch::optim::AdamWOptions(*config.learning_rate)
                           .betas({config.beta1, config.beta2})
                           .eps(kEpsilon)
                           .weight_decay(config.weight_decay);
  auto without_decay = std::make_unique<torch::optim::AdamWOptions>(options);
  without_decay->weight_decay(0);
  return std::make_unique<torch::optim::AdamW>(
      std::vector<torch::optim::OptimizerParamGroup>{{matrices, std::make_unique<torch::optim::AdamWOptions>(options)},
                                                     {others, std::move(without_decay)}},
      options);
}

/// It tells matrices from others by itself.
std::unique_ptr<torch::optim::Optimizer> make_lamb(const Config& config, const std::vector<at::Tensor>& parameters) {
  return std::make_unique<Lamb>(
      parameters,
      LambOptions(*config.learning_rate).betas({config.beta1, config.beta2}).weight_decay(config.weight_decay));
}

}  // namespace

std::unique_ptr<torch::optim::Optimizer> make_optimizer(const Config& config,
                                                        const std::vector<at::Tensor>& parameters) {
  return config.optimizer == Optimizer::lamb ? make_lamb(config, parameters) : make_adamw(config, parameters);
}

LearningRate learning_rate(const Config& config) {
  // The words are the same, in the same order; the configuration's need no LibTorch.
  return {.base_rate = *config.learning_rate,
          .base_batch = config.base_batch_tokens,
          .batch = *config.batch_tokens,
          .scaling = static_cast<tutti::BatchScaling>(config.batch_scaling),
          .warmup_steps = *config.warmup_steps,
          .warmup_from = 0,
          .decay = *config.warmup_steps < config.steps ? static_cast<tutti::Decay>(config.decay) : tutti::Decay::none,
          .steps = config.steps,
          .floor = *config.minimum_rate};
}

}  // namespace tutti::train
