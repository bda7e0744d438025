// A hook of one's own between full buckets and their results: it counts how many values a step would not miss, and
// leaves the sending to a hook that halves the bytes. What it remembers goes into a checkpoint.
//
//   tutti run -n 2 -- build/examples/own_hook

#include <cstdio>

#include <torch/torch.h>

#include <tutti/tutti.h>

namespace {

/// Watches gradients on their way.
class CountSmall final : public tutti::Hook {
 public:
  CountSmall(double limit, std::shared_ptr<tutti::Hook> inner) : limit_(limit), inner_(std::move(inner)) {}

  tutti::Work reduce(const tutti::FullBucket& bucket, const tutti::Group& group) override {
    auto gradients = bucket.gradients;  // the tensor outlives the bucket's description
    return tutti::then(inner_->reduce(bucket, group), [this, gradients] {
      small_ += gradients.abs().le(limit_).sum().item<int64_t>();  // of the average: the same on all ranks
      all_ += gradients.numel();
    });
  }

  void save(torch::serialize::OutputArchive& archive) const override {
    archive.write("seen", torch::tensor({small_, all_}));
    inner_->save(archive);
  }
  void load(torch::serialize::InputArchive& archive) override {
    torch::Tensor seen;
    archive.read("seen", seen);
    small_ = seen[0].item<int64_t>();
    all_ = seen[1].item<int64_t>();
    inner_->load(archive);
  }

  double share() const { return static_cast<double>(small_) / static_cast<double>(all_); }

 private:
  const double limit_;
  const std::shared_ptr<tutti::Hook> inner_;
  int64_t small_ = 0;
  int64_t all_ = 0;
};

int run() {
  const auto world = tutti::init();
  torch::set_num_threads(1);
  torch::manual_seed(tutti::to_int(world.rank()));
  torch::nn::Sequential net(torch::nn::Linear(8, 32), torch::nn::ReLU(), torch::nn::Linear(32, 1));
  auto hook = std::make_shared<CountSmall>(1e-3, tutti::cast_hook(torch::kBFloat16));
  const tutti::DataParallel model(net, world.group(), {.hook = hook});
  torch::optim::SGD optimizer(net->parameters(), 0.05);
  double loss_value = 0;
  for (int step = 0; step < 200; ++step) {
    optimizer.zero_grad();
    const auto x = torch::randn({64, 8});
    auto loss = torch::mse_loss(net->forward(x), x.sum(1, true).sin());
    loss.backward();
    optimizer.step();
    loss_value = loss.item<double>();
  }
  if (world.rank() == tutti::Rank{0}) {
    std::printf("loss %.3f; %.0f %% of all gradients were below 0.001\n", loss_value, 100 * hook->share());
  }
  return 0;
}

}  // namespace

int main() {
  try {
    return run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
