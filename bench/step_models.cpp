#include "bench/step_models.h"

#include "bench/options.h"

namespace bench {
namespace {

namespace nn = torch::nn;

constexpr std::int64_t kBytes = 256;  // as a vocabulary

struct BlockImpl : nn::Module {
  BlockImpl(std::int64_t width, std::int64_t count) : heads(count) {
    norm_1 = register_module("norm_1", nn::LayerNorm(nn::LayerNormOptions({width})));
    norm_2 = register_module("norm_2", nn::LayerNorm(nn::LayerNormOptions({width})));
    queries_keys_values = register_module("queries_keys_values", nn::Linear(width, 3 * width));
    out = register_module("out", nn::Linear(width, width));
    up = register_module("up", nn::Linear(width, 4 * width));
    down = register_module("down", nn::Linear(4 * width, width));
  }

  torch::Tensor forward(torch::Tensor x) {
    const auto shape = x.sizes().vec();
    const auto parts = queries_keys_values(norm_1(x)).view({shape[0], shape[1], 3, heads, -1}).permute({2, 0, 3, 1, 4});
    const auto mixed = at::scaled_dot_product_attention(parts[0], parts[1], parts[2], {}, 0.0, true);
    x = x + out(mixed.transpose(1, 2).reshape(shape));
    return x + down(torch::gelu(up(norm_2(x))));
  }

  std::int64_t heads;
  nn::LayerNorm norm_1{nullptr}, norm_2{nullptr};
  nn::Linear queries_keys_values{nullptr}, out{nullptr}, up{nullptr}, down{nullptr};
};
TORCH_MODULE(Block);

/// Ten million parameters.
struct GptImpl : nn::Module {
  GptImpl() {
    constexpr std::int64_t kWidth = 320;
    constexpr int kLayers = 8;
    token = register_module("token", nn::Embedding(kBytes, kWidth));
    place = register_module("place", nn::Embedding(kContext, kWidth));
    blocks = register_module("blocks", nn::ModuleList());
    for (int i = 0; i < kLayers; ++i) {
      blocks->push_back(Block(kWidth, 5));
    }
    norm = register_module("norm", nn::LayerNorm(nn::LayerNormOptions({kWidth})));
    head = register_module("head", nn::Linear(nn::LinearOptions(kWidth, kBytes).bias(false)));
  }

  torch::Tensor forward(const torch::Tensor& text) {
    auto x = token(text) + place(torch::arange(text.size(1)));
    for (const auto& block : *blocks) {
      x = block->as<Block>()->forward(x);
    }
    return head(norm(x));
  }

  static constexpr std::int64_t kContext = 64;
  nn::Embedding token{nullptr}, place{nullptr};
  nn::ModuleList blocks{nullptr};
  nn::LayerNorm norm{nullptr};
  nn::Linear head{nullptr};
};
TORCH_MODULE(Gpt);

struct ShortcutImpl : nn::Module {
  ShortcutImpl(std::int64_t from, std::int64_t to, std::int64_t stride) {
    const auto convolution = [](std::int64_t in, std::int64_t out, std::int64_t size, std::int64_t step) {
      return nn::Conv2d(nn::Conv2dOptions(in, out, size).stride(step).padding(size / 2).bias(false));
    };
    body = register_module("body", nn::Sequential(convolution(from, to, 3, stride), nn::BatchNorm2d(to), nn::ReLU(),
                                                  convolution(to, to, 3, 1), nn::BatchNorm2d(to)));
    past = register_module("past", nn::Sequential(convolution(from, to, 1, stride), nn::BatchNorm2d(to)));
  }
  torch::Tensor forward(const torch::Tensor& x) { return torch::relu(body->forward(x) + past->forward(x)); }
  nn::Sequential body{nullptr}, past{nullptr};
};
TORCH_MODULE(Shortcut);

/// Three million parameters.
nn::Sequential make_cnn() {
  return nn::Sequential(Shortcut(3, 64, 1), Shortcut(64, 128, 2), Shortcut(128, 256, 2), Shortcut(256, 256, 2),
                        nn::AdaptiveAvgPool2d(nn::AdaptiveAvgPool2dOptions({1, 1})), nn::Flatten(),
                        nn::Linear(256, 10));
}

/// A thousand small parameters.
nn::Sequential make_mlp() {
  nn::Sequential layers;
  for (int i = 0; i < 500; ++i) {
    layers->push_back(nn::Linear(32, 32));
    layers->push_back(nn::Tanh());
  }
  return layers;
}

}  // namespace

StepModel make_step_model(const std::string& name, int seed, std::int64_t sequences) {
  torch::manual_seed(1);
  if (name == "gpt") {
    Gpt gpt;
    torch::manual_seed(static_cast<std::uint64_t>(seed));
    const auto text = torch::randint(kBytes, {sequences, GptImpl::kContext + 1});
    return {gpt.ptr(), [gpt, text]() mutable {
              const auto logits = gpt->forward(text.slice(1, 0, GptImpl::kContext));
              return nn::functional::cross_entropy(logits.reshape({-1, kBytes}), text.slice(1, 1).reshape({-1}));
            }};
  }
  if (name == "cnn") {
    auto cnn = make_cnn();
    torch::manual_seed(static_cast<std::uint64_t>(seed));
    const auto pictures = torch::randn({8, 3, 32, 32});
    const auto kinds = torch::randint(10, {8});
    return {cnn.ptr(),
            [cnn, pictures, kinds]() mutable { return nn::functional::cross_entropy(cnn->forward(pictures), kinds); }};
  }
  if (name == "mlp") {
    auto mlp = make_mlp();
    torch::manual_seed(static_cast<std::uint64_t>(seed));
    const auto x = torch::randn({16, 32});
    return {mlp.ptr(), [mlp, x]() mutable { return mlp->forward(x).square().mean(); }};
  }
  fail("no model '" + name + "'; there are gpt, cnn and mlp");
}

}  // namespace bench
