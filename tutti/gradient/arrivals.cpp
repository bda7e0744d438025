#include "tutti/gradient/arrivals.h"

#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

namespace tutti::gradient {
namespace {

using torch::autograd::variable_list;

/// After what adds a gradient to a parameter's.
class ArrivalHook final : public torch::autograd::FunctionPostHook {
 public:
  ArrivalHook(std::size_t number, std::weak_ptr<ArrivalListener> listener)
      : number_(number), listener_(std::move(listener)) {}

  variable_list operator()(const variable_list& outputs, const variable_list& inputs) override {
    if (const auto listener = listener_.lock()) {
      listener->arrived(number_, inputs[0]);
    }
    return outputs;
  }

 private:
  const std::size_t number_;
  const std::weak_ptr<ArrivalListener> listener_;
};

}  // namespace

void Arrivals::add(const at::Tensor& parameter, std::size_t number, const std::weak_ptr<ArrivalListener>& listener) {
  auto node = torch::autograd::impl::grad_accumulator(parameter);
  const auto key = node->add_post_hook(std::make_unique<ArrivalHook>(number, listener));
  arrivals_.emplace_back(std::move(node), key);
}

void Arrivals::clear() {
  for (auto& [node, key] : arrivals_) {
    node->del_post_hook(key);
  }
  arrivals_.clear();
}

}  // namespace tutti::gradient
