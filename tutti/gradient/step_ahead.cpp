#include "tutti/gradient/step_ahead.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <unordered_set>
#include <vector>

#include <fmt/format.h>
#include <torch/optim/lbfgs.h>

#include "tutti/gradient/synchronizer.h"

namespace tutti {
namespace {

using torch::optim::Optimizer;
using torch::optim::OptimizerOptions;
using AllOptions = std::vector<std::unique_ptr<OptimizerOptions>>;

AllOptions options_of(const Optimizer& optimizer) {
  AllOptions all;
  for (const auto& group : optimizer.param_groups()) {
    all.push_back(group.options().clone());
  }
  return all;
}

/// While it lives, the optimizer has these parameters alone, with options as they were once. Its own groups are put
/// aside as they are: programs hold references into them.
class OnlyThese {
 public:
  OnlyThese(Optimizer& optimizer, std::span<const at::Tensor> parameters, const AllOptions& options)
      : optimizer_(optimizer) {
    std::unordered_set<const void*> these;
    for (const auto& parameter : parameters) {
      these.insert(parameter.unsafeGetTensorImpl());
    }
    const auto& all = optimizer.param_groups();
    for (std::size_t i = 0; i < std::min(all.size(), options.size()); ++i) {
      std::vector<at::Tensor> some;
      std::copy_if(all[i].params().begin(), all[i].params().end(), std::back_inserter(some),
                   [&](const at::Tensor& parameter) { return these.count(parameter.unsafeGetTensorImpl()) > 0; });
      groups_.emplace_back(std::move(some), options[i]->clone());
    }
    groups_.swap(optimizer.param_groups());
  }
  OnlyThese(const OnlyThese&) = delete;
  OnlyThese& operator=(const OnlyThese&) = delete;

  ~OnlyThese() { groups_.swap(optimizer_.param_groups()); }

 private:
  Optimizer& optimizer_;
  std::vector<torch::optim::OptimizerParamGroup> groups_;
};

/// What is not stepped by this optimizer would lose its gradient.
void check_has_all(const Optimizer& optimizer, const std::vector<NamedTensor>& parameters) {
  std::unordered_set<const void*> stepped;
  for (const auto& group : optimizer.param_groups()) {
    for (const auto& parameter : group.params()) {
      stepped.insert(parameter.unsafeGetTensorImpl());
    }
  }
  for (const auto& [name, tensor] : parameters) {
    if (stepped.count(tensor.unsafeGetTensorImpl()) == 0) {
      throw Exception({Code::invalid_argument,
                       fmt::format("StepAhead: the optimizer does not have parameter '{}' of the model", name)});
    }
  }
}

}  // namespace

StepAhead::StepAhead(DataParallelBase& model, Optimizer& optimizer)
    : synchronizer_(model.synchronizer_), optimizer_(optimizer) {
  if (dynamic_cast<torch::optim::LBFGS*>(&optimizer) != nullptr) {
    throw Exception({Code::invalid_argument, "StepAhead: LBFGS does not step each parameter for itself"});
  }
  check_has_all(optimizer, synchronizer_->parameters());
  synchronizer_->go_ahead(true);
}

StepAhead::~StepAhead() {
  try {
    finish();
  } catch (const std::exception& error) {
    synchronizer_->say(fmt::format("the last step was not finished: {}", error.what()));
  }
  synchronizer_->go_ahead(false);
}

void StepAhead::step() {
  const auto options = std::make_shared<const AllOptions>(options_of(optimizer_));
  synchronizer_->take_later([this, options](std::span<const at::Tensor> parameters) {
    const OnlyThese only(optimizer_, parameters, *options);
    optimizer_.step();
  });
  optimizer_.step();  // those that have a gradient now
  optimizer_.zero_grad();
}

void StepAhead::finish() { synchronizer_->settle(); }

}  // namespace tutti
