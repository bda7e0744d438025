#include "tutti/gradient/noise_scale.h"

#include <gtest/gtest.h>

#include "tutti/gradient/data_parallel.h"
#include "tutti/gradient/test_models.h"
#include "tutti/gradient/test_ranks.h"

namespace tutti {
namespace {

constexpr std::int64_t kElements = 4000;
constexpr double kSamples = 7;  // of a rank

/// Its gradient is what it is given.
struct GivenImpl : torch::nn::Module {
  GivenImpl() {
    first = register_parameter("first", torch::zeros({kElements / 4}, torch::kDouble));
    second = register_parameter("second", torch::zeros({kElements - kElements / 4}, torch::kDouble));
  }
  torch::Tensor loss(const torch::Tensor& gradient) { return (torch::cat({first, second}) * gradient).sum(); }
  torch::Tensor first, second;
};
TORCH_MODULE(Given);

/// A rank's batch of `samples` has the gradient 3 everywhere, and noise of variance 4 / samples.
torch::Tensor batch_gradient(int step, Rank rank, double samples) {
  auto generator = at::detail::createCPUGenerator(static_cast<std::uint64_t>(step * 100 + to_int(rank) + 1));
  return torch::randn({kElements}, generator, torch::kDouble) * std::sqrt(4 / samples) + 3;
}

TEST(NoiseScale, IsThatOfTheSamples) {
  for (const auto mean : {Mean::per_rank, Mean::per_sample}) {
    on_ranks(3, [mean](Group& group) {
      Given net;
      auto noise = std::make_shared<NoiseScale>(kSamples);
      DataParallel model(net, group, {.bucket_bytes = 9000, .first_bucket_bytes = 50, .mean = mean, .hook = noise});
      EXPECT_FALSE(noise->estimate());
      for (int step = 0; step < 40; ++step) {
        net->zero_grad();
        const auto loss = net->loss(batch_gradient(step, group.rank(), kSamples));
        (mean == Mean::per_sample ? model.weigh(loss, kSamples) : loss).backward();
      }
      const auto estimate = noise->estimate();
      ASSERT_TRUE(estimate);
      EXPECT_EQ(estimate->steps, 40U);
      EXPECT_NEAR(estimate->gradient, 9.0 * kElements, 0.02 * 9 * kElements);
      EXPECT_NEAR(estimate->noise, 4.0 * kElements, 0.05 * 4 * kElements);
      EXPECT_NEAR(estimate->samples, 4.0 / 9, 0.05);

      torch::serialize::OutputArchive out;
      noise->save(out);
      std::stringstream file;
      out.save_to(file);
      torch::serialize::InputArchive in;
      in.load_from(file);
      NoiseScale other(kSamples);
      other.load(in);
      EXPECT_EQ(other.estimate()->samples, estimate->samples);
    });
  }
}

TEST(NoiseScale, WhatCannotBeIsRefused) {
  EXPECT_THROW(NoiseScale(0), Exception);
  EXPECT_THROW(NoiseScale(1, nullptr), Exception);
  EXPECT_THROW(NoiseScale(1, all_reduce_hook(), 0), Exception);
}

}  // namespace
}  // namespace tutti
