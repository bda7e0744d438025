#include "tutti/optim/learning_rate.h"

#include <cmath>

#include <gtest/gtest.h>

#include "tutti/comm/exception.h"
#include "tutti/optim/lamb.h"
#include "tutti/optim/lars.h"
#include "tutti/optim/test_layers.h"

namespace tutti {
namespace {

TEST(LearningRate, FollowsTheBatch) {
  struct Row {
    BatchScaling scaling;
    std::int64_t batch;
    double expected;
  };
  for (const auto& row : std::vector<Row>{{BatchScaling::none, 4096, 0.1},
                                          {BatchScaling::linear, 256, 0.1},
                                          {BatchScaling::linear, 4096, 1.6},
                                          {BatchScaling::linear, 64, 0.025},
                                          {BatchScaling::square_root, 4096, 0.4},
                                          {BatchScaling::square_root, 64, 0.05}}) {
    const LearningRate rate{.base_rate = 0.1, .base_batch = 256, .batch = row.batch, .scaling = row.scaling};
    EXPECT_DOUBLE_EQ(rate.peak(), row.expected);
    EXPECT_DOUBLE_EQ(rate.at(0), row.expected);
    EXPECT_DOUBLE_EQ(rate.at(1'000'000'000'000), row.expected);
  }
}

/// The first steps' rates.
std::vector<double> rates(const LearningRate& rate, std::int64_t steps) {
  std::vector<double> all;
  for (std::int64_t step = 0; step < steps; ++step) {
    all.push_back(rate.at(step));
  }
  return all;
}

void expect_rates(const LearningRate& rate, const std::vector<double>& expected) {
  const auto found = rates(rate, static_cast<std::int64_t>(expected.size()));
  for (std::size_t step = 0; step < expected.size(); ++step) {
    EXPECT_NEAR(found[step], expected[step], 1e-15) << "step " << step;
  }
}

TEST(LearningRate, WarmsUpInEqualSteps) {
  LearningRate rate{.base_rate = 0.1, .base_batch = 1, .batch = 6, .warmup_steps = 5};
  expect_rates(rate, {0.2, 0.3, 0.4, 0.5, 0.6, 0.6, 0.6});
  rate.warmup_from = 0;
  expect_rates(rate, {0.12, 0.24, 0.36, 0.48, 0.6, 0.6, 0.6});
  rate.warmup_from = 0.5;
  expect_rates(rate, {0.36, 0.42, 0.48, 0.54, 0.6, 0.6, 0.6});
}

TEST(LearningRate, ASmallerBatchDoesNotBeginAboveItsPeak) {
  expect_rates({.base_rate = 0.1, .base_batch = 2, .batch = 1, .warmup_steps = 3}, {0.05, 0.05, 0.05, 0.05});
}

TEST(LearningRate, DecaysToItsFloorAndStaysThere) {
  LearningRate rate{.base_rate = 0.5, .warmup_steps = 1, .decay = Decay::linear, .steps = 5, .floor = 0.1};
  expect_rates(rate, {0.5, 0.5, 0.4, 0.3, 0.2, 0.1, 0.1, 0.1});
  rate.decay = Decay::cosine;
  const double eighth = std::cos(M_PI / 4);
  expect_rates(rate, {0.5, 0.5, 0.3 + 0.2 * eighth, 0.3, 0.3 - 0.2 * eighth, 0.1, 0.1, 0.1});
}

TEST(LearningRate, ChangesByLittleFromStepToStep) {
  for (const auto decay : {Decay::linear, Decay::cosine}) {
    const LearningRate rate{
        .base_rate = 0.1, .base_batch = 3, .batch = 24, .warmup_steps = 37, .decay = decay, .steps = 501};
    const auto all = rates(rate, 600);
    for (std::size_t step = 1; step < all.size(); ++step) {
      EXPECT_LT(std::abs(all[step] - all[step - 1]), 0.02) << step;
      EXPECT_GE(all[step], 0) << step;
    }
    EXPECT_EQ(all.back(), 0);
  }
}

TEST(LearningRate, WhatCannotBeIsRefused) {
  for (const auto& rate :
       std::vector<LearningRate>{{},
                                 {.base_rate = -1},
                                 {.base_rate = std::nan("")},
                                 {.base_rate = 1, .base_batch = 0},
                                 {.base_rate = 1, .batch = 0},
                                 {.base_rate = 1, .warmup_steps = -1},
                                 {.base_rate = 1, .warmup_from = 1.5},
                                 {.base_rate = 1, .warmup_steps = 3, .decay = Decay::linear, .steps = 3},
                                 {.base_rate = 1, .floor = -1}}) {
    EXPECT_THROW(rate.at(0), Exception);
  }
  EXPECT_THROW(LearningRate{.base_rate = 1}.at(-1), Exception);
}

std::vector<torch::optim::OptimizerParamGroup> two_groups() {
  std::vector<torch::optim::OptimizerParamGroup> groups;
  for (const auto& parameter : layers()) {
    groups.emplace_back(std::vector<at::Tensor>{parameter});
  }
  return groups;
}

TEST(LearningRateSchedule, SetsTheRateOfEveryOptimizer) {
  std::vector<std::unique_ptr<torch::optim::Optimizer>> optimizers;
  optimizers.push_back(std::make_unique<torch::optim::SGD>(two_groups(), 0.1));
  optimizers.push_back(std::make_unique<torch::optim::Adam>(two_groups(), 0.1));
  optimizers.push_back(std::make_unique<torch::optim::AdamW>(two_groups(), 0.1));
  optimizers.push_back(std::make_unique<torch::optim::Adagrad>(two_groups(), 0.1));
  optimizers.push_back(std::make_unique<torch::optim::RMSprop>(two_groups(), 0.1));
  optimizers.push_back(std::make_unique<torch::optim::LBFGS>(layers(), 0.1));
  optimizers.push_back(std::make_unique<Lars>(two_groups(), 0.1));
  optimizers.push_back(std::make_unique<Lamb>(two_groups(), 0.1));
  for (const auto& optimizer : optimizers) {
    optimizer->param_groups().back().options().set_lr(0.02);
    LearningRateSchedule schedule({.base_rate = 0.1, .batch = 5, .warmup_steps = 2, .warmup_from = 0}, *optimizer);
    for (const auto& [step, expected] : std::vector<std::pair<std::int64_t, double>>{{0, 0.25}, {1, 0.5}, {9, 0.5}}) {
      schedule.apply(*optimizer, step);
      const auto& groups = optimizer->param_groups();
      EXPECT_DOUBLE_EQ(groups.back().options().get_lr(), expected / 5) << step;
      if (groups.size() > 1) {
        EXPECT_DOUBLE_EQ(groups.front().options().get_lr(), expected) << step;
      }
    }
  }
}

TEST(LearningRateSchedule, RatiosOutliveARateOfZero) {
  torch::optim::SGD optimizer(two_groups(), 0.1);
  optimizer.param_groups()[1].options().set_lr(0.3);
  LearningRateSchedule schedule({.base_rate = 0.1, .decay = Decay::linear, .steps = 4}, optimizer);
  schedule.apply(optimizer, 4);
  EXPECT_EQ(optimizer.param_groups()[1].options().get_lr(), 0);
  schedule.apply(optimizer, 2);
  EXPECT_DOUBLE_EQ(optimizer.param_groups()[0].options().get_lr(), 0.05);
  EXPECT_DOUBLE_EQ(optimizer.param_groups()[1].options().get_lr(), 0.15);
}

TEST(LearningRateSchedule, GroupsMayComeLater) {
  torch::optim::SGD optimizer(two_groups(), 0.1);
  LearningRateSchedule schedule({.base_rate = 0.1, .batch = 3}, optimizer);
  schedule.apply(optimizer, 0);
  optimizer.add_param_group(two_groups()[0]);
  optimizer.param_groups()[2].options().set_lr(0.2);
  for (std::int64_t step = 1; step < 4; ++step) {
    schedule.apply(optimizer, step);
    EXPECT_DOUBLE_EQ(optimizer.param_groups()[0].options().get_lr(), 0.3);
    EXPECT_DOUBLE_EQ(optimizer.param_groups()[2].options().get_lr(), 0.6);
  }
  torch::optim::SGD other(layers(), 0.1);
  EXPECT_THROW(schedule.apply(other, 0), Exception);
}

}  // namespace
}  // namespace tutti
