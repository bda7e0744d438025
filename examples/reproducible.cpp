// The same weights, bit by bit, on any number of ranks: 100 steps of 8 microbatches, dealt out to whoever is there.
//
//   for n in 1 2 3 4 8; do tutti run -n $n -- build/examples/reproducible weights.$n; done; sha256sum weights.*

#include <cstdio>
#include <fstream>
#include <optional>

#include <torch/torch.h>

#include <tutti/tutti.h>

namespace {

namespace nn = torch::nn;

constexpr int kMicrobatches = 8;
constexpr int kSteps = 100;

struct NetImpl : nn::Module {
  NetImpl() {
    words = register_module("words", nn::Embedding(256, 48));
    mix = register_module("mix", nn::Linear(48 * 8, 96));
    norm = register_module("norm", nn::LayerNorm(nn::LayerNormOptions({96})));
    out = register_module("out", nn::Linear(96, 256));
  }
  torch::Tensor forward(const torch::Tensor& text) { return out(norm(torch::gelu(mix(words(text).flatten(1))))); }

  nn::Embedding words{nullptr};
  nn::Linear mix{nullptr}, out{nullptr};
  nn::LayerNorm norm{nullptr};
};
TORCH_MODULE(Net);

/// Of this step and microbatch, whoever computes it.
torch::Tensor loss_of(Net& net, int step, int microbatch) {
  torch::manual_seed(static_cast<std::uint64_t>(1000 * step + microbatch));
  const auto text = torch::randint(256, {4, 9});
  return nn::functional::cross_entropy(net->forward(text.slice(1, 0, 8)), text.select(1, 8));
}

void write(const nn::Module& module, const char* path) {
  std::ofstream file(path, std::ios::binary);
  for (const auto& parameter : module.parameters()) {
    const auto bytes = parameter.detach().contiguous();
    file.write(static_cast<const char*>(bytes.data_ptr()), static_cast<std::streamsize>(bytes.nbytes()));
  }
  if (!file.flush()) {
    throw std::runtime_error(std::string("cannot write ") + path);
  }
}

void run(const char* path) {
  torch::set_num_threads(1);  // a microbatch is computed the same way everywhere
  const auto world = tutti::init();
  torch::manual_seed(7);
  Net net;
  tutti::DataParallel model(net, world.group(),
                            {.mean = tutti::Mean::per_pass, .reduction = tutti::Reduction::reproducible});
  torch::optim::AdamW optimizer(net->parameters(), torch::optim::AdamWOptions(1e-3));
  for (int step = 0; step < kSteps; ++step) {
    optimizer.zero_grad();
    for (int i = tutti::to_int(world.rank()); i < kMicrobatches; i += world.size()) {
      std::optional<tutti::DataParallelBase::Pause> pause;
      if (i + world.size() < kMicrobatches) {
        pause.emplace(model.no_sync());  // more to come
      }
      loss_of(net, step, i).backward();
    }
    optimizer.step();
  }
  if (world.rank() == tutti::Rank{0}) {
    write(*net, path);
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(argc > 1 ? argv[1] : "weights");
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
