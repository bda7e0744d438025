#pragma once
// Parameters and gradients for tests of optimizers.

#include <sstream>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

namespace tutti {

/// Numbers that depend on the seed alone.
inline at::Tensor drawn(at::IntArrayRef sizes, int seed, at::ScalarType type = at::kDouble) {
  const auto count = c10::multiply_integers(sizes);
  return torch::arange(count, torch::kDouble).mul(7.7).add(seed * 1.3).sin().reshape(sizes).to(type);
}

/// A matrix and a bias.
inline std::vector<at::Tensor> layers(at::ScalarType type = at::kDouble) {
  return {drawn({3, 5}, 1, type).requires_grad_(), drawn({7}, 2, type).requires_grad_()};
}

/// The gradients of a step, other ones in each.
inline void set_gradients(std::vector<at::Tensor>& parameters, int step) {
  int seed = 100 * (step + 1);
  for (auto& parameter : parameters) {
    parameter.mutable_grad() = drawn(parameter.sizes(), seed++, parameter.scalar_type());
  }
}

inline std::vector<double> values(const at::Tensor& tensor) {
  const auto flat = tensor.detach().to(at::kDouble).contiguous();
  return {flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel()};
}

inline double length(const std::vector<double>& vector) {
  double sum = 0;
  for (const double value : vector) {
    sum += value * value;
  }
  return std::sqrt(sum);
}

inline void expect_near(const at::Tensor& tensor, const std::vector<double>& expected, int step) {
  const auto found = values(tensor);
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_NEAR(found[i], expected[i], 1e-12 * std::max(1.0, std::abs(expected[i]))) << "[" << i << "], step " << step;
  }
}

inline void expect_same_bits(const std::vector<at::Tensor>& tensors, const std::vector<at::Tensor>& expected) {
  ASSERT_EQ(tensors.size(), expected.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    EXPECT_TRUE(torch::equal(tensors[i], expected[i])) << i;
  }
}

/// Steps `from` to `to` with gradients that are the step's own.
inline void train(torch::optim::Optimizer& optimizer, std::vector<at::Tensor>& parameters, int from, int to) {
  for (int step = from; step < to; ++step) {
    set_gradients(parameters, step);
    optimizer.step();
  }
}

/// An optimizer that was saved after some steps and loaded into a new one goes on as if nothing had happened.
/// `make` makes one for parameters.
template <class Make>
void expect_continues_after_loading(const Make& make) {
  auto parameters = layers();
  auto optimizer = make(parameters, 1.0);
  train(optimizer, parameters, 0, 3);
  std::stringstream file;
  torch::save(optimizer, file);
  std::vector<at::Tensor> copies;
  for (const auto& parameter : parameters) {
    copies.push_back(parameter.detach().clone().requires_grad_());
  }
  train(optimizer, parameters, 3, 7);
  auto loaded = make(copies, 2.0);  // other options, which loading replaces
  torch::load(loaded, file);
  train(loaded, copies, 3, 7);
  expect_same_bits(copies, parameters);
}

}  // namespace tutti
