#include "train/memory_need.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::train {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Config settled(Config config, int ranks = 1) { return settle(std::move(config), ranks).value(); }

TEST(MemoryNeed, CountsWhatTrainingKeeps) {
  const auto config = settled({.layers = 3, .heads = 2, .width = 10, .context = 7, .batch_tokens = 7 * 6});
  const auto parameters = static_cast<double>(model_size(config).parameters());
  const auto need = least_memory(config, 1);
  EXPECT_EQ(need.weights, 4 * parameters);
  EXPECT_EQ(need.gradients, 4 * parameters);
  EXPECT_EQ(need.optimizer, 8 * parameters);
  EXPECT_EQ(need.activations, 42 * (10 * 4 * (16 * 3 + 1) + 256 * 4));
}

TEST(MemoryNeed, Bfloat16HasMastersAndSmallerActivations) {
  const auto single = least_memory(settled({}), 1);
  const auto half = least_memory(settled({.precision = Precision::bfloat16}), 1);
  EXPECT_EQ(half.weights, 1.5 * single.weights);
  EXPECT_EQ(half.gradients, 0.5 * single.gradients);
  EXPECT_EQ(half.optimizer, single.optimizer);
  EXPECT_LT(half.activations, single.activations);
}

TEST(MemoryNeed, IsThatOfOnePass) {
  const auto activations = [](const Config& config, int ranks) {
    return least_memory(settled(config, ranks), ranks).activations;
  };
  const Config config{.batch_tokens = 128 * 24};
  auto in_pieces = config;
  in_pieces.accumulation = 3;
  EXPECT_EQ(activations(config, 2), activations(config, 1) / 2);
  EXPECT_EQ(activations(in_pieces, 2), activations(config, 1) / 6);
}

TEST(MemoryNeed, OfASingleStepDoesNotHaveAllAtOnce) {
  const MemoryNeed need{.weights = 3, .gradients = 5, .optimizer = 7, .activations = 11};
  EXPECT_EQ(need.bytes(1), 3 + 5 + 7);
  EXPECT_EQ(need.bytes(2), 3 + 7 + 11);
}

TEST(MemoryNeed, RefusesOnlyWhatIsMore) {
  const auto config = settled({}, 3);
  const auto bytes = 3 * least_memory(config, 3).bytes(config.steps);
  EXPECT_EQ(why_it_cannot_fit(config, 3, bytes), std::nullopt);
  EXPECT_THAT(*why_it_cannot_fit(config, 3, bytes - 1), HasSubstr("each of 3 ranks"));
}

TEST(MemoryNeed, SaysWhatWouldNeedLess) {
  constexpr double kGiB = 1 << 30;
  EXPECT_THAT(*why_it_cannot_fit(settled({.batch_tokens = 128 * 1'000'000}), 1, 7 * kGiB),
              AllOf(HasSubstr("and there is 7.0 GiB: each of 1 rank "), HasSubstr("a pass of 128000000 tokens"),
                    HasSubstr("a smaller --batch-tokens, a larger --accumulation or a smaller --preset needs less")));
  EXPECT_THAT(*why_it_cannot_fit(settled({.layers = 100, .width = 8192}, 2), 2, 7 * kGiB),
              HasSubstr("a smaller --preset or --width, or fewer ranks (-n), needs less"));
}

TEST(MemoryNeed, CountsTheLargestThatCanBeAskedFor) {
  const auto config =
      settled({.layers = 1000, .heads = 1, .width = 100'000, .context = 1'000'000, .batch_tokens = 1'000'000'000'000});
  EXPECT_TRUE(std::isfinite(least_memory(config, 1).bytes(2)));
  EXPECT_THAT(*why_it_cannot_fit(config, 1, 1e15), HasSubstr("at least a million GiB"));
}

}  // namespace
}  // namespace tutti::train
