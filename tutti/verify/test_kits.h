#pragma once
// Small models and batches for tests of the verifier.

#include <functional>
#include <memory>
#include <string>

#include <torch/torch.h>

#include "tutti/gradient/test_models.h"
#include "tutti/verify/trainee.h"

namespace tutti {

/// A model and the mean loss of some rows.
struct Kit {
  std::shared_ptr<torch::nn::Module> module;
  std::function<at::Tensor(const Rows&)> loss;
};

struct KitOptions {
  std::string model = "mlp";  ///< or "cnn", "gpt", "norm" (with batch norm), "dropout"
  int seed = 1;
  torch::Dtype dtype = torch::kDouble;
};

namespace nn = torch::nn;

/// A sequence, and a buffer that nothing depends on.
struct StackImpl : nn::Module {
  explicit StackImpl(nn::Sequential sequence) : layers(register_module("layers", std::move(sequence))) {
    register_buffer("seen", torch::zeros({3}));
  }
  nn::Sequential layers;
};
TORCH_MODULE(Stack);

struct TinyGptImpl : nn::Module {
  static constexpr std::int64_t kWords = 11;
  static constexpr std::int64_t kWidth = 6;

  TinyGptImpl() {
    words = register_module("words", nn::Embedding(kWords, kWidth));
    norm = register_module("norm", nn::LayerNorm(nn::LayerNormOptions({kWidth})));
    mix = register_module("mix", nn::Linear(kWidth, 3 * kWidth));
    out = register_module("out", nn::Linear(kWidth, kWidth));
    up = register_module("up", nn::Linear(kWidth, 9));
    down = register_module("down", nn::Linear(9, kWidth));
    register_buffer("seen", torch::zeros({3}));
  }
  torch::Tensor forward(const torch::Tensor& text) {
    auto x = words(text);
    const auto parts = mix(norm(x)).view({x.size(0), x.size(1), 3, 2, -1}).permute({2, 0, 3, 1, 4});
    const auto heads = at::scaled_dot_product_attention(parts[0], parts[1], parts[2], {}, 0.0, true);
    x = x + out(heads.transpose(1, 2).reshape(x.sizes()));
    x = x + down(torch::gelu(up(x)));
    return torch::matmul(x, words->weight.t());  // tied
  }

  nn::Embedding words{nullptr};
  nn::LayerNorm norm{nullptr};
  nn::Linear mix{nullptr}, out{nullptr}, up{nullptr}, down{nullptr};
};
TORCH_MODULE(TinyGpt);

inline void draw(nn::Module& module, const KitOptions& options) {
  const torch::NoGradGuard no_grad;
  module.to(options.dtype);
  int seed = options.seed * 10;
  for (auto& parameter : module.parameters()) {
    parameter.copy_(drawn(parameter.sizes(), ++seed, options.dtype) * 0.6);
  }
}

inline Kit stack_kit(const nn::Sequential& layers, const KitOptions& options) {
  Stack stack(layers);
  draw(*stack, options);
  return {stack.ptr(), [stack](const Rows& rows) mutable {
            return (stack->layers->forward(rows[0]) - rows[1]).square().sum(1).mean();
          }};
}

inline Kit make_kit(const KitOptions& options) {
  if (options.model == "gpt") {
    TinyGpt gpt;
    draw(*gpt, options);
    return {gpt.ptr(), [gpt](const Rows& rows) mutable {
              const auto logits = gpt->forward(rows[0]).reshape({-1, TinyGptImpl::kWords});
              return nn::functional::cross_entropy(logits, rows[1].reshape({-1}));
            }};
  }
  if (options.model == "cnn") {
    return stack_kit(nn::Sequential(nn::Conv2d(nn::Conv2dOptions(2, 4, 3).padding(1)), nn::Tanh(), nn::Conv2d(4, 3, 3),
                                    nn::Flatten(), nn::Linear(27, 3)),
                     options);
  }
  if (options.model == "norm") {
    return stack_kit(nn::Sequential(nn::Linear(5, 7), nn::BatchNorm1d(7), nn::Tanh(), nn::Linear(7, 3)), options);
  }
  if (options.model == "dropout") {
    return stack_kit(nn::Sequential(nn::Linear(5, 7), nn::Dropout(0.3), nn::Tanh(), nn::Linear(7, 3)), options);
  }
  return stack_kit(nn::Sequential(nn::Linear(5, 7), nn::Tanh(), nn::Linear(7, 3)), options);
}

inline Rows make_rows(const KitOptions& options, std::int64_t count) {
  if (options.model == "gpt") {
    const auto text = (drawn({count, 5}, options.seed + 50) * 1000).to(torch::kLong).remainder(TinyGptImpl::kWords);
    return {text.slice(1, 0, 4), text.slice(1, 1, 5)};
  }
  const auto y = drawn({count, 3}, options.seed + 51, options.dtype);
  if (options.model == "cnn") {
    return {drawn({count, 2, 5, 5}, options.seed + 52, options.dtype), y};
  }
  return {drawn({count, 5}, options.seed + 53, options.dtype), y};
}

}  // namespace tutti
