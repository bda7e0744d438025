#include "tutti/verify/reference.h"

#include <c10/core/GradMode.h>
#include <fmt/format.h>

namespace tutti::verifying {
namespace {

std::vector<NamedTensor> state_of(const torch::nn::Module& module) {
  auto all = parameters_of(module);
  const auto buffers = buffers_of(module);
  all.insert(all.end(), buffers.begin(), buffers.end());
  return all;
}

}  // namespace

Reference::Reference(Trainee alone, const torch::nn::Module& verified)
    : alone_(std::move(alone)), own_(state_of(*alone_.module)), theirs_(state_of(verified)) {
  for (std::size_t i = 0; i < own_.size() || i < theirs_.size(); ++i) {
    const auto told = [&](const std::vector<NamedTensor>& of) {
      return i < of.size() ? fmt::format("'{}' {}", of[i].name, describe(of[i].tensor)) : std::string("nothing");
    };
    if (told(own_) != told(theirs_)) {
      throw Exception({Code::mismatch, fmt::format("verify: the factory makes different models: {} alone, {} together",
                                                   told(own_), told(theirs_))});
    }
  }
}

Reference::Result Reference::compute(const Rows& rows) {
  {
    const c10::NoGradGuard no_grad;
    for (std::size_t i = 0; i < own_.size(); ++i) {
      at::Tensor(own_[i].tensor).copy_(theirs_[i].tensor);
    }
  }
  alone_.module->zero_grad();
  const auto loss = alone_.loss(rows);
  loss.backward();
  return {loss.item().toDouble(), gradients_of(*alone_.module)};
}

std::vector<at::Tensor> gradients_of(const torch::nn::Module& module) {
  std::vector<at::Tensor> gradients;
  for (const auto& one : parameters_of(module)) {
    const auto& gradient = one.tensor.grad();
    gradients.push_back(gradient.defined() ? flat_doubles(gradient).clone() : at::Tensor());
  }
  return gradients;
}

}  // namespace tutti::verifying
