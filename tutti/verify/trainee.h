#pragma once

#include <functional>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include "tutti/comm/mesh.h"

namespace tutti {

/// Tensors that belong together row by row (dimension 0): inputs, labels.
using Rows = std::vector<at::Tensor>;

/// A model and how it is trained, for `verify`. Only the first two have to be there.
struct Trainee {
  std::shared_ptr<torch::nn::Module> module;
  /// The mean loss of some rows.
  std::function<at::Tensor(const Rows&)> loss;
  /// What comes between zero_grad and step instead of `loss(rows).backward()`, as microbatches: gives the mean loss of
  /// all these rows, or an undefined tensor. Not called where one process stands for all.
  std::function<at::Tensor(const Rows&)> backward = nullptr;
  /// What comes after that, as `average_gradients`. Not called where one process stands for all.
  std::function<void()> synchronize = nullptr;
  /// The step of an optimizer; without, that of plain gradient descent.
  std::function<void()> step = nullptr;
  /// What has to live as long, as a DataParallel.
  std::shared_ptr<void> keep = nullptr;
};

enum class Role {
  together,  ///< what is verified: one of many ranks, which synchronize
  alone,  ///< one process in the place of all ranks that gradients are averaged over; along other axes it stays itself
};

/// Makes the same model each time, on every rank; where one process stands for all, without any synchronization.
using TraineeFactory = std::function<Trainee(const Mesh&, Role)>;

}  // namespace tutti
