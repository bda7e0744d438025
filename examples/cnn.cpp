// A CNN whose batch norms see the batches of all ranks. Each rank's batch is small and of one kind of picture more than
// of the others, so that its own statistics would mislead it.
//
//   tutti run -n 2 -- build/examples/cnn [steps]

#include <cstdio>
#include <cstdlib>

#include <torch/torch.h>

#include <tutti/tutti.h>

namespace {

namespace nn = torch::nn;

constexpr int64_t kBatch = 16;  // of each rank

struct Batch {
  torch::Tensor pictures, kinds;
};

/// Stripes: horizontal, vertical, both or none, brighter or darker. Two of three are of the kind that is preferred.
Batch make_batch(uint64_t seed, int64_t size, int64_t preferred) {
  auto generator = at::detail::createCPUGenerator(seed);
  const auto any = torch::randint(4, {size}, generator);
  const auto kinds = torch::where(torch::rand({size}, generator) < 0.67, torch::full_like(any, preferred), any);
  const auto wave = (torch::arange(16) * 1.3).sin();
  const auto across = kinds.remainder(2).view({-1, 1, 1, 1}) * wave.view({1, 1, 1, 16});
  const auto down = kinds.floor_divide(2).view({-1, 1, 1, 1}) * wave.view({1, 1, 16, 1});
  const auto noise = torch::randn({size, 1, 16, 16}, generator) * 0.7 + 3 * torch::rand({size, 1, 1, 1}, generator);
  return {across + down + noise, kinds};
}

nn::Sequential make_net() {
  torch::manual_seed(7);
  return nn::Sequential(nn::Conv2d(nn::Conv2dOptions(1, 8, 3).padding(1)), nn::BatchNorm2d(8), nn::ReLU(),
                        nn::MaxPool2d(2), nn::Conv2d(nn::Conv2dOptions(8, 16, 3).padding(1)), nn::BatchNorm2d(16),
                        nn::ReLU(), nn::AdaptiveAvgPool2d(nn::AdaptiveAvgPool2dOptions(1)), nn::Flatten(),
                        nn::Linear(16, 4));
}

void run(int64_t steps) {
  const auto world = tutti::init();
  torch::set_num_threads(1);
  auto net = make_net();
  tutti::synchronize_batch_norm(*net, world.group());
  const tutti::DataParallel model(net, world.group());
  torch::optim::Adam optimizer(net->parameters(), torch::optim::AdamOptions(5e-3));
  const auto rank = tutti::to_int(world.rank());
  for (int64_t step = 0; step < steps; ++step) {
    const auto batch = make_batch(static_cast<uint64_t>(1000 * step + rank), kBatch, rank % 4);
    optimizer.zero_grad();
    nn::functional::cross_entropy(net->forward(batch.pictures), batch.kinds).backward();
    optimizer.step();
  }
  if (rank == 0) {
    const torch::NoGradGuard no_grad;
    net->eval();
    double right = 0;
    for (int64_t kind = 0; kind < 4; ++kind) {
      const auto unseen = make_batch(static_cast<uint64_t>(-1 - kind), 250, kind);
      right += net->forward(unseen.pictures).argmax(1).eq(unseen.kinds).to(torch::kFloat).mean().item<double>() / 4;
    }
    std::printf("%.0f %% of pictures it has not seen are right\n", 100 * right);
  }
}

}  // namespace

int main(int argc, char** argv) try {
  run(argc > 1 ? std::atoll(argv[1]) : 150);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
