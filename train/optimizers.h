#pragma once

#include <memory>
#include <vector>

#include <torch/optim/optimizer.h>

#include "train/config.h"
#include "tutti/optim/learning_rate.h"

namespace tutti::train {

/// The optimizer that a settled configuration asks for. Matrices are drawn to 0 by weight decay; biases and the scales
/// of norms are not.
std::unique_ptr<torch::optim::Optimizer> make_optimizer(const Config& config,
                                                        const std::vector<at::Tensor>& parameters);

/// The rate of every step, of a settled configuration.
LearningRate learning_rate(const Config& config);

}  // namespace tutti::train
