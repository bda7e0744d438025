#include "tutti/optim/loss_scale.h"

#include <cmath>
#include <limits>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "tutti/comm/world.h"
#include "tutti/optim/test_layers.h"

namespace tutti {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Gradients of which one element is that.
void set_gradients_with(std::vector<at::Tensor>& parameters, double value) {
  set_gradients(parameters, 0);
  parameters[1].mutable_grad()[3] = value;
}

TEST(LossScale, GradientsComeOutAsTheyWere) {
  auto parameter = drawn({3, 5}, 1, at::kFloat).requires_grad_();
  LossScale scale;
  scale.scale(parameter.sin().sum()).backward();
  EXPECT_TRUE(scale.unscale({parameter}));
  EXPECT_TRUE(torch::equal(parameter.grad(), parameter.detach().cos())) << "powers of two round nothing";
}

TEST(LossScale, SmallGradientsOutliveFloat16) {
  const auto gradient_with = [](const LossScale& scale) {
    auto weight = torch::ones({1}, torch::kHalf).requires_grad_();
    scale.scale((weight.to(torch::kFloat) * 1e-9).sum()).backward();
    return weight.grad().item<double>() / scale.value();
  };
  EXPECT_NEAR(gradient_with(LossScale()), 1e-9, 1e-11);
  EXPECT_EQ(gradient_with(LossScale(std::nullopt, {.initial = 1})), 0);
}

TEST(LossScale, ALossInFloat16DoesNotOverflow) {
  const auto scaled = LossScale().scale(torch::full({}, 7, torch::kHalf));
  EXPECT_EQ(scaled.item<double>(), 7 * 32768.0);
}

TEST(LossScale, ShrinksAndGrows) {
  auto parameters = layers();
  LossScale scale(std::nullopt, {.initial = 8, .growth_interval = 3, .smallest = 2, .largest = 16});
  const auto values_after = [&](double element, int steps) {
    std::vector<double> found;
    for (int step = 0; step < steps; ++step) {
      set_gradients_with(parameters, element);
      EXPECT_EQ(scale.unscale(parameters), std::isfinite(element));
      found.push_back(scale.value());
    }
    return found;
  };
  EXPECT_THAT(values_after(0.5, 8), testing::ElementsAre(8, 8, 16, 16, 16, 16, 16, 16));
  EXPECT_THAT(values_after(kInfinity, 5), testing::ElementsAre(8, 4, 2, 2, 2));
  EXPECT_THAT(values_after(0.5, 2), testing::ElementsAre(2, 2));
  EXPECT_THAT(values_after(std::nan(""), 1), testing::ElementsAre(2));
  EXPECT_THAT(values_after(0.5, 3), testing::ElementsAre(2, 2, 4)) << "in a row";
}

TEST(LossScale, StepsThatAreNotFiniteAreNotTaken) {
  for (const double bad : {kInfinity, -kInfinity, std::nan("")}) {
    auto parameters = layers();
    torch::optim::Adam optimizer(parameters, 0.1);
    LossScale scale;
    set_gradients_with(parameters, bad);
    EXPECT_FALSE(scale.step(optimizer));
    expect_same_bits(parameters, layers());
    EXPECT_TRUE(optimizer.state().empty());
    set_gradients_with(parameters, 1);
    EXPECT_TRUE(scale.step(optimizer));
    EXPECT_FALSE(torch::equal(parameters[0], layers()[0]));
  }
}

TEST(LossScale, AllRanksSkipTogether) {
  run_ranks(3, [](Group& group) {
    auto parameters = layers();
    torch::optim::SGD optimizer(parameters, 0.1);
    LossScale scale(group, {.growth_interval = 2});
    for (int step = 0; step < 9; ++step) {
      const bool good = step % 4 != 1;
      const auto before = parameters[0].detach().clone();
      const bool mine = group.rank() == Rank{step % 3};
      set_gradients_with(parameters, !good && mine ? kInfinity : 1.0);
      EXPECT_EQ(scale.step(optimizer), good) << step;
      EXPECT_EQ(torch::equal(parameters[0], before), !good) << step;
    }
    EXPECT_EQ(scale.value(), 32768.0) << "1/2 in steps 1 and 5, 2 after 3 and 7";
  });
}

TEST(LossScale, EveryKindOfGradient) {
  auto sparse = torch::zeros({5, 3}).requires_grad_();
  sparse.mutable_grad() = torch::full({5, 3}, 6.0F).to_sparse();
  auto wave = torch::zeros({5}, torch::kComplexFloat).requires_grad_();
  wave.mutable_grad() = torch::full({5}, 4.0F).to(torch::kComplexFloat);
  auto empty = torch::zeros({0, 3}).requires_grad_();
  empty.mutable_grad() = torch::zeros({0, 3});
  const auto unused = torch::zeros({3}).requires_grad_();
  LossScale scale(std::nullopt, {.initial = 2});
  EXPECT_TRUE(scale.unscale({sparse, wave, empty, unused}));
  EXPECT_TRUE(torch::equal(sparse.grad().to_dense(), torch::full({5, 3}, 3.0F)));
  EXPECT_TRUE(torch::equal(torch::real(wave.grad()), torch::full({5}, 2.0F)));
  EXPECT_FALSE(unused.grad().defined());
  torch::imag(wave.mutable_grad())[2] = std::nan("");
  EXPECT_FALSE(scale.unscale({sparse, wave, empty, unused}));
}

TEST(LossScale, PatienceEndsOnAllRanks) {
  run_ranks(2, [](Group& group) {
    auto parameters = layers();
    LossScale scale(group, {.patience = 3});
    const auto fail = [&] {
      set_gradients_with(parameters, group.rank() == Rank{1} ? std::nan("") : 1.0);
      return scale.unscale(parameters);
    };
    EXPECT_FALSE(fail());
    EXPECT_FALSE(fail());
    try {
      (void)fail();
      ADD_FAILURE() << "went on";
    } catch (const Exception& error) {
      EXPECT_THAT(error.error().message, testing::HasSubstr("not finite in 3 steps in a row"));
    }
  });
}

TEST(LossScale, ContinuesAfterLoading) {
  auto parameters = layers();
  const LossScaleOptions options{.growth_interval = 3};
  LossScale scale(std::nullopt, options);
  set_gradients_with(parameters, kInfinity);
  EXPECT_FALSE(scale.unscale(parameters));
  set_gradients_with(parameters, 1);
  EXPECT_TRUE(scale.unscale(parameters));
  std::stringstream file;
  torch::save(scale, file);
  LossScale loaded(std::nullopt, options);
  torch::load(loaded, file);
  EXPECT_EQ(loaded.value(), 16384);
  EXPECT_TRUE(loaded.unscale(parameters));
  EXPECT_EQ(loaded.value(), 16384);
  EXPECT_TRUE(loaded.unscale(parameters));
  EXPECT_EQ(loaded.value(), 32768) << "the third in a row";
}

TEST(LossScale, OptionsThatCannotBeAreRefused) {
  for (const auto& options : std::vector<LossScaleOptions>{{.initial = 0.5},
                                                           {.initial = 1e9},
                                                           {.smallest = 0},
                                                           {.largest = 1e300},
                                                           {.growth = 0.5},
                                                           {.backoff = 1},
                                                           {.growth_interval = 0},
                                                           {.patience = 0}}) {
    EXPECT_THROW(LossScale(std::nullopt, options), Exception);
  }
}

}  // namespace
}  // namespace tutti
