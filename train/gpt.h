#pragma once
// A GPT whose parameters have the names and shapes of GPT-2's, so that what is saved here loads elsewhere.

#include <cstdint>
#include <vector>

#include <torch/torch.h>

namespace tutti::train {

struct GptShape {
  std::int64_t words = 256;  ///< bytes
  std::int64_t context = 256;
  std::int64_t layers = 4;
  std::int64_t heads = 4;
  std::int64_t width = 128;

  std::int64_t parameters() const;
};

/// A linear layer whose weights lie the other way round: [in, out].
class Conv1dImpl : public torch::nn::Module {
 public:
  Conv1dImpl(std::int64_t in, std::int64_t out);
  torch::Tensor forward(const torch::Tensor& x);

  torch::Tensor weight, bias;
};
TORCH_MODULE(Conv1d);

/// Every word looks at those before it.
class AttentionImpl : public torch::nn::Module {
 public:
  explicit AttentionImpl(const GptShape& shape);
  torch::Tensor forward(const torch::Tensor& x);

 private:
  std::int64_t heads_;
  Conv1d c_attn_{nullptr}, c_proj_{nullptr};
};
TORCH_MODULE(Attention);

class MlpImpl : public torch::nn::Module {
 public:
  explicit MlpImpl(const GptShape& shape);
  torch::Tensor forward(const torch::Tensor& x);

 private:
  Conv1d c_fc_{nullptr}, c_proj_{nullptr};
};
TORCH_MODULE(Mlp);

class BlockImpl : public torch::nn::Module {
 public:
  explicit BlockImpl(const GptShape& shape);
  torch::Tensor forward(torch::Tensor x);

 private:
  torch::nn::LayerNorm ln_1_{nullptr}, ln_2_{nullptr};
  Attention attn_{nullptr};
  Mlp mlp_{nullptr};
};
TORCH_MODULE(Block);

/// Parameters are called `transformer.h.0.attn.c_attn.weight` and so on; the last layer shares its weights with the
/// first.
class GptImpl : public torch::nn::Module {
 public:
  /// Weights are drawn from the seed alone.
  GptImpl(const GptShape& shape, std::uint64_t seed);

  /// Logits [texts, length, words] of texts [texts, length], no longer than the context.
  torch::Tensor forward(const torch::Tensor& text);
  /// The mean over all words of what the next one costs, in nats.
  torch::Tensor loss(const torch::Tensor& text, const torch::Tensor& next);

  const GptShape& shape() const { return shape_; }

 private:
  void draw(std::uint64_t seed);

  GptShape shape_;
  torch::nn::Embedding wte_{nullptr}, wpe_{nullptr};
  std::vector<Block> blocks_;
  torch::nn::LayerNorm ln_f_{nullptr};
};
TORCH_MODULE(Gpt);

}  // namespace tutti::train
