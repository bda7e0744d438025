#pragma once
// Models and batches for tests of gradients.

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "tutti/comm/group.h"
#include "tutti/gradient/options.h"

namespace tutti {

/// Numbers that depend on the seed alone: LibTorch's generator is one for all ranks that are threads.
inline torch::Tensor drawn(at::IntArrayRef sizes, int seed, torch::Dtype dtype = torch::kDouble) {
  const auto count = c10::multiply_integers(sizes);
  return torch::arange(count, torch::kDouble).mul(7.7).add(seed * 1.3).sin().reshape(sizes).to(dtype);
}

/// In float64, values that depend on the seed alone.
inline void set_parameters(torch::nn::Module& module, int seed) {
  module.to(torch::kDouble);
  const torch::NoGradGuard no_grad;
  for (auto& parameter : module.parameters()) {
    parameter.copy_(drawn(parameter.sizes(), seed++));
  }
}

struct NetImpl : torch::nn::Module {
  explicit NetImpl(int seed = 1) {
    first = register_module("first", torch::nn::Linear(5, 7));
    second = register_module("second", torch::nn::Linear(7, 3));
    spare = register_module("spare", torch::nn::Linear(7, 3));
    set_parameters(*this, seed);
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

inline constexpr std::int64_t kRows = 3;  ///< of each rank
inline torch::Tensor rows_of(Rank rank) { return rows(to_int(rank) * kRows, (to_int(rank) + 1) * kRows); }
inline torch::Tensor rows_of_all(const Group& group) { return rows(0, group.size() * kRows); }

/// Small buckets, so that there are several.
inline DataParallelOptions small_buckets(DataParallelOptions options = {}) {
  options.bucket_bytes = 100;
  options.first_bucket_bytes = 50;
  return options;
}

inline torch::Tensor mean_loss(const torch::Tensor& y) { return y.square().sum(1).mean(); }

/// Pictures `from` to `to` of the batch that all ranks together have, with features that differ.
inline torch::Tensor pictures(std::int64_t from, std::int64_t to) {
  const auto all = drawn({17, 3, 4, 4}, 7) * torch::tensor({0.5, 3.0, 0.9}, torch::kDouble).view({1, 3, 1, 1}) + 1;
  return all.slice(0, from, to).clone();
}

/// The members' type says what they are: only their tensors can be changed.
struct CnnImpl : torch::nn::Module {
  CnnImpl() {
    norm_0 = register_module("norm_0", torch::nn::BatchNorm2d(3));
    first = register_module("first", torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 5, 3).padding(1)));
    norm_1 = register_module("norm_1", torch::nn::BatchNorm2d(torch::nn::BatchNormOptions(5).momentum(std::nullopt)));
    last = register_module("last", torch::nn::Linear(5, 2));
    norm_2 = register_module("norm_2", torch::nn::BatchNorm1d(torch::nn::BatchNormOptions(2).affine(false)));
    set_parameters(*this, 1);
  }
  torch::Tensor forward(const torch::Tensor& x) {
    return norm_2(last(torch::tanh(norm_1(first(norm_0(x)))).mean({2, 3})));
  }
  torch::nn::BatchNorm2d norm_0{nullptr}, norm_1{nullptr};
  torch::nn::Conv2d first{nullptr};
  torch::nn::Linear last{nullptr};
  torch::nn::BatchNorm1d norm_2{nullptr};
};
TORCH_MODULE(Cnn);

inline torch::Tensor picture_loss(const torch::Tensor& y) {
  return torch::tanh(y - drawn(y.sizes().slice(1), 3)).sum(1).mean();
}

/// A transformer with one head; its first and its last layer share their weights.
struct GptImpl : torch::nn::Module {
  static constexpr std::int64_t kWords = 11;
  static constexpr std::int64_t kLength = 5;
  static constexpr std::int64_t kWidth = 6;

  GptImpl() {
    words = register_parameter("words", torch::empty({kWords, kWidth}));
    places = register_parameter("places", torch::empty({kLength, kWidth}));
    for (int i = 0; i < 2; ++i) {
      const auto name = std::to_string(i);
      norms.push_back(register_module("norm_" + name, torch::nn::LayerNorm(torch::nn::LayerNormOptions({kWidth}))));
      in.push_back(register_module("in_" + name, torch::nn::Linear(kWidth, 3 * kWidth)));
      out.push_back(register_module("out_" + name, torch::nn::Linear(kWidth, kWidth)));
    }
    set_parameters(*this, 1);
  }

  torch::Tensor forward(const torch::Tensor& text) {
    auto x = words.index_select(0, text.flatten()).view({text.size(0), kLength, kWidth}) + places;
    for (std::size_t i = 0; i < in.size(); ++i) {
      const auto parts = in[i](norms[i](x)).chunk(3, 2);
      const auto mask = torch::ones({kLength, kLength}, torch::kBool).triu(1);
      const auto scores = torch::matmul(parts[0], parts[1].transpose(1, 2)).masked_fill(mask, -1e30);
      x = x + out[i](torch::matmul(torch::softmax(scores, 2), parts[2]));
    }
    return torch::matmul(x, words.t());
  }

  torch::Tensor words, places;
  std::vector<torch::nn::LayerNorm> norms;
  std::vector<torch::nn::Linear> in, out;
};
TORCH_MODULE(Gpt);

/// Texts `from` to `to` of the batch that all ranks together have.
inline torch::Tensor texts(std::int64_t from, std::int64_t to) {
  const auto length = GptImpl::kLength + 1;
  return torch::arange(from * length, to * length).mul(7).add(3).remainder(GptImpl::kWords).view({to - from, length});
}

inline torch::Tensor text_loss(Gpt& gpt, const torch::Tensor& text) {
  const auto logits = gpt->forward(text.slice(1, 0, GptImpl::kLength));
  return torch::nn::functional::cross_entropy(logits.reshape({-1, GptImpl::kWords}), text.slice(1, 1).reshape({-1}));
}

/// That every gradient is there where the other's is, and the same but for rounding. Values below `smallest` are seen
/// as noise where they are compared.
inline void expect_same_gradients(const torch::nn::Module& module, const torch::nn::Module& reference,
                                  const std::string& where = "", double smallest = 1e-3) {
  const auto expected = reference.named_parameters();
  for (const auto& item : module.named_parameters()) {
    const auto& gradient = item.value().grad();
    const auto& wanted = expected[item.key()].grad();
    ASSERT_EQ(gradient.defined(), wanted.defined()) << item.key() << " " << where;
    if (gradient.defined()) {
      // Beside the largest, since sums that cancel have no exact digits of their own.
      const auto off = (gradient - wanted).abs().max().item<double>();
      EXPECT_LE(off, 1e-12 * std::max(wanted.abs().max().item<double>(), smallest)) << item.key() << " " << where;
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
