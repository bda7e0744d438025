#pragma once

#include <memory>

#include <torch/optim/optimizer.h>

#include "tutti/gradient/data_parallel.h"

namespace tutti {

/// Takes the optimizer's steps so that the next forward can begin before all gradients are back. For slow cables: where
/// backward's end leaves several buckets waiting for theirs, those that the next forward needs first go first, backward
/// returns without them, and each parameter is stepped when its gradient has come, at the latest before an operator
/// uses it.
///
///   tutti::StepAhead ahead(model, optimizer);     // after both of them
///   for (...) {
///     cross_entropy(model->forward(x), y).backward();
///     ahead.step();                               // instead of optimizer.step() and zero_grad()
///   }
///
/// The weights are those that optimizer.step() gives, to the bit. Between backward and step(), operators that need a
/// gradient wait for it (clip_gradients waits for all, so that nothing is gained). Who reaches parameters, gradients or
/// the optimizer's state past LibTorch's operators (by data_ptr(), saving, loading, set_data(), or operations of a
/// Group) calls finish() first. The optimizer steps each parameter for itself, with options as they were at step(). On
/// all ranks or none; on one rank alone it changes nothing. What goes wrong on the way is thrown by the next backward,
/// step() or finish(). One thread at a time.
class StepAhead {
 public:
  StepAhead(DataParallelBase& model, torch::optim::Optimizer& optimizer);
  StepAhead(const StepAhead&) = delete;
  StepAhead& operator=(const StepAhead&) = delete;
  /// Finishes.
  ~StepAhead();

  /// Steps, and sets gradients to none.
  void step();

  /// All gradients are back, and all parameters stepped.
  void finish();

 private:
  const std::shared_ptr<gradient::Synchronizer> synchronizer_;
  torch::optim::Optimizer& optimizer_;
};

}  // namespace tutti
