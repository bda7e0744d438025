// The same training with more ranks, each with a batch of the same size: the learning rate follows, LAMB takes the
// steps, weights are bfloat16 with float32 masters. docs/large_batches.md says why.
//
//   tutti run -n 2 -- build/examples/large_batches [steps]

#include <cstdio>
#include <cstdlib>

#include <torch/torch.h>

#include <tutti/tutti.h>

namespace {

constexpr int64_t kBatch = 63;  // of each rank

/// Is a point inside of a ring? Other points for every rank and step.
struct Batch {
  torch::Tensor points, inside;
  Batch(int64_t step, tutti::Rank rank) {
    const auto seed = static_cast<uint64_t>(1000 * step + tutti::to_int(rank));
    auto generator = at::detail::createCPUGenerator(seed);
    points = torch::rand({kBatch, 2}, generator) * 2 - 1;
    const auto radius = points.norm(2, 1, true);
    inside = ((radius > 0.4) * (radius < 0.8)).to(torch::kFloat);
  }
};

torch::Tensor loss_of(torch::nn::Sequential& net, const Batch& batch) {
  const auto guess = net->forward(batch.points.to(torch::kBFloat16)).to(torch::kFloat);
  return torch::binary_cross_entropy_with_logits(guess, batch.inside);
}

int run(int64_t steps) {
  const auto world = tutti::init();
  torch::set_num_threads(1);
  torch::manual_seed(17);
  torch::nn::Sequential net(torch::nn::Linear(2, 64), torch::nn::Tanh(), torch::nn::Linear(64, 64), torch::nn::Tanh(),
                            torch::nn::Linear(64, 1));
  net->to(torch::kBFloat16);
  const tutti::DataParallel model(net, world.group());
  tutti::MasterWeights masters(*net);
  tutti::Lamb optimizer(masters.parameters(), tutti::LambOptions(0.02));
  tutti::LearningRateSchedule schedule({.base_rate = 0.02,
                                        .base_batch = kBatch,
                                        .batch = kBatch * world.size(),
                                        .scaling = tutti::BatchScaling::square_root,
                                        .warmup_steps = steps / 10,
                                        .decay = tutti::Decay::cosine,
                                        .steps = steps},
                                       optimizer);
  for (int64_t step = 0; step < steps; ++step) {
    schedule.apply(optimizer, step);
    masters.zero_grad();
    auto loss = loss_of(net, Batch(step, world.rank()));
    loss.backward();
    masters.step(optimizer);
    if (world.rank() == tutti::Rank{0} && (step + 1) % (steps / 10) == 0) {
      std::printf("step %4lld  rate %.4f  loss %.3f\n", static_cast<long long>(step + 1), schedule.rate().at(step),
                  loss.item<double>());
      std::fflush(stdout);
    }
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const int steps = argc > 1 ? std::atoi(argv[1]) : 300;
  if (argc > 2 || steps < 10) {
    std::fprintf(stderr, "usage: large_batches [steps, at least 10]\n");
    return 2;
  }
  try {
    return run(steps);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
