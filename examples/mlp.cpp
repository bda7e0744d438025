// An MLP on pictures of the size of MNIST's, which are made up here: strokes at ten angles, blurred and noisy.
//
//   tutti run -n 2 -- build/examples/mlp [steps]

#include <cmath>
#include <cstdio>
#include <cstdlib>

#include <torch/torch.h>

#include <tutti/tutti.h>

namespace {

namespace nn = torch::nn;

constexpr int64_t kBatch = 120;  // of all ranks

struct Batch {
  torch::Tensor pictures, digits;
};

/// Other pictures for every number; the same for everybody who asks for it.
Batch make_batch(int64_t number, int64_t size) {
  auto generator = at::detail::createCPUGenerator(static_cast<uint64_t>(number));
  const auto digits = torch::randint(10, {size}, generator);
  const auto angle = (digits.to(torch::kFloat) * (M_PI / 10)).view({-1, 1, 1});
  const auto shift = torch::randn({size, 1, 1}, generator) * 2;
  const auto x = (torch::arange(28) - 13.5).view({1, 1, 28});
  const auto y = (torch::arange(28) - 13.5).view({1, 28, 1});
  const auto distance = x * angle.cos() + y * angle.sin() + shift;
  const auto noise = torch::randn({size, 28, 28}, generator) * 0.5;
  return {(-distance.square() / 8).exp() + noise, digits};
}

nn::Sequential make_net() {
  torch::manual_seed(7);
  return nn::Sequential(nn::Flatten(), nn::Linear(784, 128), nn::ReLU(), nn::Linear(128, 10));
}

void run(int64_t steps) {
  const auto world = tutti::init();
  torch::set_num_threads(1);
  auto net = make_net();
  const tutti::DataParallel model(net, world.group());
  torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));
  for (int64_t step = 0; step < steps; ++step) {
    const auto batch = make_batch(step, kBatch);
    const auto part = [&](const torch::Tensor& whole) {
      return whole.tensor_split(world.size())[static_cast<std::size_t>(tutti::to_int(world.rank()))];
    };
    optimizer.zero_grad();
    nn::functional::cross_entropy(net->forward(part(batch.pictures)), part(batch.digits)).backward();
    optimizer.step();
  }
  if (world.rank() == tutti::Rank{0}) {
    const torch::NoGradGuard no_grad;
    const auto unseen = make_batch(-1, 1000);
    const auto right = net->forward(unseen.pictures).argmax(1).eq(unseen.digits).to(torch::kFloat).mean();
    std::printf("%.0f %% of pictures it has not seen are right\n", 100 * right.item<double>());
  }
}

}  // namespace

int main(int argc, char** argv) try {
  run(argc > 1 ? std::atoll(argv[1]) : 200);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
