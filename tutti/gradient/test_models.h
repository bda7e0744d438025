#pragma once
// Models and batches for tests of gradients.

#include <functional>
#include <string>

#include <gtest/gtest.h>
#include <torch/torch.h>

namespace tutti {

/// Numbers that depend on the seed alone: LibTorch's generator is one for all ranks that are threads.
inline torch::Tensor drawn(at::IntArrayRef sizes, int seed, torch::Dtype dtype = torch::kDouble) {
  const auto count = c10::multiply_integers(sizes);
  return torch::arange(count, torch::kDouble).mul(7.7).add(seed * 1.3).sin().reshape(sizes).to(dtype);
}

struct NetImpl : torch::nn::Module {
  explicit NetImpl(int seed = 1) {
    first = register_module("first", torch::nn::Linear(5, 7));
    second = register_module("second", torch::nn::Linear(7, 3));
    spare = register_module("spare", torch::nn::Linear(7, 3));
    to(torch::kDouble);
    const torch::NoGradGuard no_grad;
    for (auto& parameter : parameters()) {
      parameter.copy_(drawn(parameter.sizes(), seed++));
    }
  }
  torch::Tensor forward(const torch::Tensor& x) { return second(torch::tanh(first(x))); }
  torch::Tensor other_way(const torch::Tensor& x) { return spare(torch::tanh(first(x))); }

  torch::nn::Linear first{nullptr};
  torch::nn::Linear second{nullptr};
  torch::nn::Linear spare{nullptr};
};
TORCH_MODULE(Net);

/// Rows `from` to `to` of the batch that all ranks together have.
inline torch::Tensor rows(std::int64_t from, std::int64_t to) {
  return torch::arange(from * 5, to * 5, torch::kDouble).reshape({to - from, 5}).mul(0.1).sin();
}

inline torch::Tensor mean_loss(const torch::Tensor& y) { return y.square().sum(1).mean(); }

/// That every gradient is there where the other's is, and the same but for rounding.
inline void expect_same_gradients(const torch::nn::Module& module, const torch::nn::Module& reference,
                                  const std::string& where = "") {
  const auto expected = reference.named_parameters();
  for (const auto& item : module.named_parameters()) {
    const auto& gradient = item.value().grad();
    const auto& wanted = expected[item.key()].grad();
    ASSERT_EQ(gradient.defined(), wanted.defined()) << item.key() << " " << where;
    if (gradient.defined()) {
      EXPECT_TRUE(torch::allclose(gradient, wanted, 1e-12, 1e-15)) << item.key() << " " << where;
    }
  }
}

/// Runs a part of a model again in backward instead of keeping what it computed: a backward inside a backward.
struct Checkpoint : torch::autograd::Function<Checkpoint> {
  using Part = std::function<torch::Tensor(torch::Tensor)>;

  static torch::Tensor forward(torch::autograd::AutogradContext* context, const torch::Tensor& x, const Part& part) {
    context->save_for_backward({x});
    context->saved_data["part"] = reinterpret_cast<std::int64_t>(new Part(part));
    const torch::NoGradGuard no_grad;
    return part(x);
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    const std::unique_ptr<Part> part(reinterpret_cast<Part*>(context->saved_data["part"].toInt()));
    const torch::AutoGradMode enabled(true);
    auto x = context->get_saved_variables()[0].detach().requires_grad_();
    (*part)(x).backward(gradients[0]);
    return {x.grad(), torch::Tensor()};
  }
};

}  // namespace tutti
