#include "train/gpt.h"

#include <cmath>
#include <memory>
#include <string>

namespace tutti::train {
namespace {

namespace nn = torch::nn;

nn::LayerNorm make_norm(std::int64_t width) { return nn::LayerNorm(nn::LayerNormOptions({width}).eps(1e-5)); }

/// A part of the tree that only has children: what `transformer.` and `transformer.h.` stand for.
struct BranchImpl : nn::Module {};
TORCH_MODULE(Branch);

}  // namespace

std::int64_t GptShape::parameters() const {
  const auto block = 12 * width * width + 13 * width;
  return (words + context) * width + layers * block + 2 * width;
}

Conv1dImpl::Conv1dImpl(std::int64_t in, std::int64_t out)
    : weight(register_parameter("weight", torch::empty({in, out}))),
      bias(register_parameter("bias", torch::zeros({out}))) {}

torch::Tensor Conv1dImpl::forward(const torch::Tensor& x) {
  auto sizes = x.sizes().vec();
  sizes.back() = bias.size(0);
  return torch::addmm(bias, x.reshape({-1, weight.size(0)}), weight).view(sizes);
}

AttentionImpl::AttentionImpl(const GptShape& shape)
    : heads_(shape.heads),
      c_attn_(register_module("c_attn", Conv1d(shape.width, 3 * shape.width))),
      c_proj_(register_module("c_proj", Conv1d(shape.width, shape.width))) {}

torch::Tensor AttentionImpl::forward(const torch::Tensor& x) {
  const auto texts = x.size(0);
  const auto length = x.size(1);
  const auto parts = c_attn_(x).view({texts, length, 3, heads_, -1}).permute({2, 0, 3, 1, 4});
  const auto seen = at::scaled_dot_product_attention(parts[0], parts[1], parts[2], {}, 0.0, true);
  return c_proj_(seen.transpose(1, 2).reshape({texts, length, -1}));
}

MlpImpl::MlpImpl(const GptShape& shape)
    : c_fc_(register_module("c_fc", Conv1d(shape.width, 4 * shape.width))),
      c_proj_(register_module("c_proj", Conv1d(4 * shape.width, shape.width))) {}

torch::Tensor MlpImpl::forward(const torch::Tensor& x) { return c_proj_(torch::gelu(c_fc_(x), "tanh")); }

BlockImpl::BlockImpl(const GptShape& shape)
    : ln_1_(register_module("ln_1", make_norm(shape.width))),
      ln_2_(register_module("ln_2", make_norm(shape.width))),
      attn_(register_module("attn", Attention(shape))),
      mlp_(register_module("mlp", Mlp(shape))) {}

torch::Tensor BlockImpl::forward(torch::Tensor x) {
  x = x + attn_(ln_1_(x));
  return x + mlp_(ln_2_(x));
}

GptImpl::GptImpl(const GptShape& shape, std::uint64_t seed) : shape_(shape) {
  auto transformer = register_module("transformer", Branch());
  wte_ = transformer->register_module("wte", nn::Embedding(shape.words, shape.width));
  wpe_ = transformer->register_module("wpe", nn::Embedding(shape.context, shape.width));
  auto layers = transformer->register_module("h", Branch());
  for (std::int64_t i = 0; i < shape.layers; ++i) {
    blocks_.push_back(layers->register_module(std::to_string(i), Block(shape)));
  }
  ln_f_ = transformer->register_module("ln_f", make_norm(shape.width));
  draw(seed);
}

void GptImpl::draw(std::uint64_t seed) {
  const torch::NoGradGuard no_grad;
  auto generator = at::detail::createCPUGenerator(seed);
  // What adds to the residual stream starts smaller, the more often that happens.
  const auto small = 0.02 / std::sqrt(2.0 * static_cast<double>(shape_.layers));
  for (auto& item : named_parameters()) {
    const auto& name = item.key();
    if (item.value().dim() == 2) {
      item.value().normal_(0, name.find("c_proj") != name.npos ? small : 0.02, generator);
    }
  }
}

torch::Tensor GptImpl::forward(const torch::Tensor& text) {
  auto x = wte_(text) + wpe_(torch::arange(text.size(1)));
  for (auto& block : blocks_) {
    x = block(x);
  }
  return torch::matmul(ln_f_(x), wte_->weight.t());
}

torch::Tensor GptImpl::loss(const torch::Tensor& text, const torch::Tensor& next) {
  return nn::functional::cross_entropy(forward(text).view({-1, shape_.words}), next.reshape({-1}));
}

}  // namespace tutti::train
