// The smallest GPT that trains on many ranks: it learns to count. `tutti train` is the same with data, flags and files.
//
//   tutti run -n 2 -- build/examples/gpt [steps]

#include <cstdio>
#include <cstdlib>

#include <torch/torch.h>

#include <tutti/tutti.h>

namespace nn = torch::nn;

constexpr int64_t kWords = 17, kContext = 16, kWidth = 32, kHeads = 4, kBatch = 24;  // of all ranks

struct LayerImpl : nn::Module {
  torch::Tensor forward(torch::Tensor x) {
    auto parts = in(norm1(x)).view({x.size(0), -1, 3, kHeads, kWidth / kHeads}).permute({2, 0, 3, 1, 4});
    auto seen = at::scaled_dot_product_attention(parts[0], parts[1], parts[2], {}, 0.0, /*is_causal=*/true);
    x = x + out(seen.transpose(1, 2).flatten(2));
    return x + down(torch::gelu(up(norm2(x))));
  }
  nn::LayerNorm norm1 = register_module("norm1", nn::LayerNorm(nn::LayerNormOptions({kWidth})));
  nn::LayerNorm norm2 = register_module("norm2", nn::LayerNorm(nn::LayerNormOptions({kWidth})));
  nn::Linear in = register_module("in", nn::Linear(kWidth, 3 * kWidth));
  nn::Linear out = register_module("out", nn::Linear(kWidth, kWidth));
  nn::Linear up = register_module("up", nn::Linear(kWidth, 4 * kWidth));
  nn::Linear down = register_module("down", nn::Linear(4 * kWidth, kWidth));
};
TORCH_MODULE(Layer);

struct GptImpl : nn::Module {
  torch::Tensor forward(const torch::Tensor& text) {
    return head(last(first(words(text) + places(torch::arange(text.size(1))))));
  }
  nn::Embedding words = register_module("words", nn::Embedding(kWords, kWidth));
  nn::Embedding places = register_module("places", nn::Embedding(kContext, kWidth));
  Layer first = register_module("first", Layer()), last = register_module("last", Layer());
  nn::Linear head = register_module("head", nn::Linear(kWidth, kWords));
};
TORCH_MODULE(Gpt);

/// Counting in steps of 1 to 5, around the clock: sample by number, whoever asks for it.
torch::Tensor text_of(int64_t sample) {
  return (torch::arange(kContext + 1) * (1 + sample % 5) + sample * 7).remainder(kWords);
}

int main(int argc, char** argv) try {
  const auto world = tutti::init();
  const int64_t steps = argc > 1 ? std::atoll(argv[1]) : 300;
  torch::set_num_threads(1);
  torch::manual_seed(1);
  Gpt net;
  const tutti::DataParallel model(net, world.group());  // every rank starts as rank 0
  torch::optim::AdamW optimizer(net->parameters(), torch::optim::AdamWOptions(3e-3));
  for (int64_t step = 0; step < steps; ++step) {
    std::vector<torch::Tensor> part;  // of the batch: what is this rank's
    for (int64_t i = tutti::to_int(world.rank()); i < kBatch; i += world.size()) {
      part.push_back(text_of(step * kBatch + i));
    }
    const auto text = torch::stack(part);
    optimizer.zero_grad();
    auto logits = model->forward(text.slice(1, 0, kContext));
    auto loss = nn::functional::cross_entropy(logits.flatten(0, 1), text.slice(1, 1).flatten());
    loss.backward();  // gradients are averaged while this runs
    optimizer.step();
    if (world.rank() == tutti::Rank{0} && (step + 1) % 50 == 0) {
      std::printf("step %4lld  loss %.3f\n", static_cast<long long>(step + 1), loss.item<double>());
    }
  }
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
