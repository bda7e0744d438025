#pragma once
// A GPT whose parameters have the names and shapes of GPT-2's, so that what is saved here loads elsewhere.

#include <cstdint>
#include <vector>

#include <torch/torch.h>

#include "train/presets.h"

namespace tutti::train {

/// A linear layer whose weights lie the other way round: [in, out].
class Conv1dImpl : public torch::nn::Module {
 public:
  Conv1dImpl(std::int64_t in, std::int64_t out);
  torch::Tensor forward(const torch::Tensor& x);

  torch::Tensor weight, bias;
};
TORCH_MODULE(Conv1d);

/// Every token looks at itself and at those before it.
class AttentionImpl : public torch::nn::Module {
 public:
  explicit AttentionImpl(const ModelSize& size);
  torch::Tensor forward(const torch::Tensor& x);

 private:
  std::int64_t heads_;
  Conv1d c_attn_{nullptr}, c_proj_{nullptr};
};
TORCH_MODULE(Attention);

class MlpImpl : public torch::nn::Module {
 public:
  explicit MlpImpl(const ModelSize& size);
  torch::Tensor forward(const torch::Tensor& x);

 private:
  Conv1d c_fc_{nullptr}, c_proj_{nullptr};
};
TORCH_MODULE(Mlp);

class LayerImpl : public torch::nn::Module {
 public:
  explicit LayerImpl(const ModelSize& size);
  torch::Tensor forward(torch::Tensor x);

 private:
  torch::nn::LayerNorm ln_1_{nullptr}, ln_2_{nullptr};
  Attention attn_{nullptr};
  Mlp mlp_{nullptr};
};
TORCH_MODULE(Layer);

/// Parameters are called `transformer.h.0.attn.c_attn.weight` and so on; the last layer shares its weights with the
/// first.
class GptImpl : public torch::nn::Module {
 public:
  /// Weights are drawn from the seed alone.
  GptImpl(const ModelSize& size, std::uint64_t seed);

  /// Logits [texts, length, 256] of texts [texts, length], which are no longer than the context.
  torch::Tensor forward(const torch::Tensor& text);
  /// What the next byte costs in nats, as the mean over all of them. In float32 at least.
  torch::Tensor loss(const torch::Tensor& text, const torch::Tensor& next);

  const ModelSize& size() const { return size_; }

 private:
  void draw(std::uint64_t seed);

  ModelSize size_;
  torch::nn::Embedding wte_{nullptr}, wpe_{nullptr};
  std::vector<Layer> layers_;
  torch::nn::LayerNorm ln_f_{nullptr};
};
TORCH_MODULE(Gpt);

}  // namespace tutti::train
