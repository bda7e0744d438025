#include "tutti/gradient/arrivals.h"

#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <torch/csrc/autograd/variable.h>

namespace tutti::gradient {

void Arrivals::add(const at::Tensor& parameter, std::size_t number, const Arrived& arrived) {
  auto node = torch::autograd::impl::grad_accumulator(parameter);
  const auto key = node->add_post_hook(
      std::make_unique<torch::autograd::utils::LambdaPostHook>([arrived, number](const auto& outputs, const auto& inputs) {
        arrived(number, inputs[0]);
        return outputs;
      }));
  arrivals_.emplace_back(std::move(node), key);
}

void Arrivals::clear() {
  for (auto& [node, key] : arrivals_) {
    node->del_post_hook(key);
  }
  arrivals_.clear();
}

}  // namespace tutti::gradient
