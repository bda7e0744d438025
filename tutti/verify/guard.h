#pragma once

#include <cstdint>

#include <torch/nn/module.h>

#include "tutti/comm/group.h"
#include "tutti/gradient/model_parts.h"

namespace tutti {

struct GuardOptions {
  int every = 100;       ///< so many steps
  bool buffers = false;  ///< compared, too
};

/// Whether ranks that should have the same parameters still do, in real runs, at next to no cost: every so many steps
/// they compare hashes. Made by all ranks of the group, with the same module; `step` is called by all after every step
/// of the optimizer. One thread at a time.
///
///   tutti::ParameterGuard guard(*net, group, {.every = 100});
///   ...
///   optimizer.step();
///   guard.step();
class ParameterGuard {
 public:
  /// Compares at once, so that a difference later is one that came later: to be made after DataParallel.
  ParameterGuard(const torch::nn::Module& module, Group group, const GuardOptions& options = {});

  /// Throws, on all ranks, when their parameters differ: the first one, the step, and the ranks that do not have what
  /// most have; of two halves, those that do not have what rank 0 has.
  void step();
  /// The same, whatever step it is.
  void check();

 private:
  std::vector<NamedTensor> tensors_;
  const Group group_;
  const GuardOptions options_;
  std::int64_t steps_ = 0;
  std::int64_t equal_ = -1;  // the last step after which all were the same
};

}  // namespace tutti
