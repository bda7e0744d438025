// Two ranks train one network: each sees its part of every batch, and they average their gradients by hand.
// At the end rank 0 trains the same network alone on the whole batches and compares the weights: the proof.
//
//   tutti run -n 2 -- build/examples/average_by_hand [steps]

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include <torch/torch.h>

#include <tutti/tutti.h>

namespace {

constexpr int64_t kBatch = 252;  // divides by 1, 2, 3, 4, 6, 7, 9
constexpr int kClasses = 3;
constexpr double kTolerance = 1e-10;

torch::nn::Sequential make_net() {
  torch::manual_seed(17);  // every rank starts from the same weights
  torch::nn::Sequential net(torch::nn::Linear(2, 64), torch::nn::Tanh(), torch::nn::Linear(64, 64), torch::nn::Tanh(),
                            torch::nn::Linear(64, kClasses));
  net->to(torch::kDouble);
  return net;
}

torch::optim::SGD make_optimizer(torch::nn::Sequential& net) {
  return torch::optim::SGD(net->parameters(), torch::optim::SGDOptions(0.2).momentum(0.9));
}

struct Batch {
  torch::Tensor points, labels;
  Batch part(int64_t which, int64_t parts) const { return {points.chunk(parts)[which], labels.chunk(parts)[which]}; }
};

/// Three spiral arms, a little blurred; the same batch for a step on every rank.
Batch make_batch(int step) {
  auto generator = at::detail::createCPUGenerator(1000 + static_cast<uint64_t>(step));
  const auto labels = torch::arange(kBatch) % kClasses;
  const auto along = torch::rand({kBatch}, generator, torch::kDouble);
  const auto angle =
      4.0 * along + labels * (2 * M_PI / kClasses) + 0.15 * torch::randn({kBatch}, generator, torch::kDouble);
  return {torch::stack({along * angle.cos(), along * angle.sin()}, 1) * 2.0, labels};
}

struct Step {
  double loss = 0, sync_seconds = 0;
};

/// One step of gradient descent on this rank's part of the batch. The mean of the ranks' gradients is the gradient of
/// the whole batch, since all parts have the same size.
Step train_step(torch::nn::Sequential& net, torch::optim::SGD& optimizer, const Batch& batch,
                const tutti::Group* group) {
  optimizer.zero_grad();
  auto loss = torch::nn::functional::cross_entropy(net->forward(batch.points), batch.labels);
  loss.backward();
  Step step;
  if (group != nullptr) {
    const auto before = std::chrono::steady_clock::now();
    std::vector<tutti::Work> works;
    for (auto& parameter : net->parameters()) {
      works.push_back(group->all_reduce(parameter.grad(), tutti::ReduceOp::avg));
    }
    loss = loss.detach();
    works.push_back(group->all_reduce(loss, tutti::ReduceOp::avg));
    for (auto& work : works) {
      work.wait();
    }
    step.sync_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count();
  }
  optimizer.step();
  step.loss = loss.item<double>();
  return step;
}

void show(int step, int steps, const Step& done, double seconds) {
  constexpr int kWidth = 24;
  const int filled = kWidth * step / steps;
  std::printf("step %3d/%d [%.*s%.*s]  loss %.4f  %6.0f samples/s  sync %2.0f %%\n", step, steps, filled,
              "########################", kWidth - filled, "........................", done.loss,
              static_cast<double>(kBatch) / seconds, 100 * done.sync_seconds / seconds);
  std::fflush(stdout);
}

double accuracy(torch::nn::Sequential& net) {
  const torch::NoGradGuard no_grad;
  const auto batch = make_batch(-1);
  return (net->forward(batch.points).argmax(1) == batch.labels).to(torch::kDouble).mean().item<double>();
}

/// Trains alone on whole batches, and says how far the weights are from those of all ranks together.
bool prove(torch::nn::Sequential& together, int ranks, int steps) {
  auto alone = make_net();
  auto optimizer = make_optimizer(alone);
  for (int step = 0; step < steps; ++step) {
    train_step(alone, optimizer, make_batch(step), nullptr);
  }
  double difference = 0;
  int64_t weights = 0;
  for (std::size_t i = 0; i < alone->parameters().size(); ++i) {
    difference = std::max(difference, (alone->parameters()[i] - together->parameters()[i]).abs().max().item<double>());
    weights += alone->parameters()[i].numel();
  }
  const bool equal = difference <= kTolerance;
  std::printf(
      "%s: %lld weights of %d rank%s against one process that saw the whole batch, after %d steps: they differ by "
      "at most %.2g (allowed: %.0e, rounding of float64)\n",
      equal ? "proved" : "NOT EQUAL", static_cast<long long>(weights), ranks, ranks == 1 ? "" : "s", steps, difference,
      kTolerance);
  return equal;
}

int run(int steps) {
  const auto world = tutti::init();
  torch::set_num_threads(1);
  if (kBatch % world.size() != 0) {
    std::fprintf(stderr, "%lld samples cannot be divided evenly over %d ranks; try 2, 3, 4 or 6\n",
                 static_cast<long long>(kBatch), world.size());
    return 1;
  }
  const bool first = world.rank() == tutti::Rank{0};
  if (first) {
    std::printf("%d ranks on engine '%s', %lld samples a step, %lld on each\n", world.size(),
                world.group().engine().c_str(), static_cast<long long>(kBatch),
                static_cast<long long>(kBatch / world.size()));
  }
  auto net = make_net();
  auto optimizer = make_optimizer(net);
  for (int step = 0; step < steps; ++step) {
    const auto batch = make_batch(step).part(tutti::to_int(world.rank()), world.size());
    const auto before = std::chrono::steady_clock::now();
    const auto done = train_step(net, optimizer, batch, &world.group());
    if (first) {
      show(step + 1, steps, done, std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count());
    }
  }
  bool good = true;
  if (first) {
    std::printf("accuracy on points it has not seen: %.0f %%\n", 100 * accuracy(net));
    good = prove(net, world.size(), steps);
  }
  world.group().barrier().wait();  // nobody leaves while rank 0 still compares
  return good ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const int steps = argc > 1 ? std::atoi(argv[1]) : 100;
  if (argc > 2 || steps < 1) {
    std::fprintf(stderr, "usage: average_by_hand [steps]\n");
    return 2;
  }
  try {
    return run(steps);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
