#include "train/gpt.h"

#include <cmath>
#include <string>

namespace tutti::train {
namespace {

namespace nn = torch::nn;

nn::LayerNorm make_norm(std::int64_t width) { return nn::LayerNorm(nn::LayerNormOptions({width}).eps(1e-5)); }

/// A part of the tree that only has children: what `transformer.` and `transformer.h.` stand for.
struct BranchImpl : nn::Module {};
TORCH_MODULE(Branch);

}  // namespace

Conv1dImpl::Conv1dImpl(std::int64_t in, std::int64_t out)
    : weight(register_parameter("weight", torch::empty({in, out}))),
      bias(register_parameter("bias", torch::zeros({out}))) {}

torch::Tensor Conv1dImpl::forward(const torch::Tensor& x) {
  auto sizes = x.sizes().vec();
  sizes.back() = bias.size(0);
  return torch::addmm(bias, x.reshape({-1, weight.size(0)}), weight).view(sizes);
}

AttentionImpl::AttentionImpl(const ModelSize& size)
    : heads_(size.heads),
      c_attn_(register_module("c_attn", Conv1d(size.width, 3 * size.width))),
      c_proj_(register_module("c_proj", Conv1d(size.width, size.width))) {}

torch::Tensor AttentionImpl::forward(const torch::Tensor& x) {
  const auto texts = x.size(0);
  const auto length = x.size(1);
  const auto parts = c_attn_(x).view({texts, length, 3, heads_, -1}).permute({2, 0, 3, 1, 4});
  const auto seen = at::scaled_dot_product_attention(parts[0], parts[1], parts[2], {}, 0.0, true);
  return c_proj_(seen.transpose(1, 2).reshape({texts, length, -1}));
}

MlpImpl::MlpImpl(const ModelSize& size)
    : c_fc_(register_module("c_fc", Conv1d(size.width, 4 * size.width))),
      c_proj_(register_module("c_proj", Conv1d(4 * size.width, size.width))) {}

torch::Tensor MlpImpl::forward(const torch::Tensor& x) { return c_proj_(torch::gelu(c_fc_(x), "tanh")); }

LayerImpl::LayerImpl(const ModelSize& size)
    : ln_1_(register_module("ln_1", make_norm(size.width))),
      ln_2_(register_module("ln_2", make_norm(size.width))),
      attn_(register_module("attn", Attention(size))),
      mlp_(register_module("mlp", Mlp(size))) {}

torch::Tensor LayerImpl::forward(torch::Tensor x) {
  x = x + attn_(ln_1_(x));
  return x + mlp_(ln_2_(x));
}

GptImpl::GptImpl(const ModelSize& size, std::uint64_t seed) : size_(size) {
  auto transformer = register_module("transformer", Branch());
  wte_ = transformer->register_module("wte", nn::Embedding(kVocabulary, size.width));
  wpe_ = transformer->register_module("wpe", nn::Embedding(size.context, size.width));
  auto stack = transformer->register_module("h", Branch());
  for (std::int64_t i = 0; i < size.layers; ++i) {
    layers_.push_back(stack->register_module(std::to_string(i), Layer(size)));
  }
  ln_f_ = transformer->register_module("ln_f", make_norm(size.width));
  draw(seed);
}

void GptImpl::draw(std::uint64_t seed) {
  const torch::NoGradGuard no_grad;
  auto generator = at::detail::createCPUGenerator(seed);
  // What adds to the residual stream starts smaller, the more often that happens.
  const auto small = 0.02 / std::sqrt(2.0 * static_cast<double>(size_.layers));
  for (auto& item : named_parameters()) {
    if (item.value().dim() == 2) {
      item.value().normal_(0, item.key().ends_with("c_proj.weight") ? small : 0.02, generator);
    }
  }
}

torch::Tensor GptImpl::forward(const torch::Tensor& text) {
  auto x = wte_(text) + wpe_(torch::arange(text.size(1)));
  for (auto& layer : layers_) {
    x = layer(x);
  }
  return torch::matmul(ln_f_(x), wte_->weight.t());
}

torch::Tensor GptImpl::loss(const torch::Tensor& text, const torch::Tensor& next) {
  auto logits = forward(text).view({-1, kVocabulary});
  if (logits.scalar_type() != torch::kDouble) {
    logits = logits.to(torch::kFloat);
  }
  return nn::functional::cross_entropy(logits, next.reshape({-1}));
}

}  // namespace tutti::train
