#include "tutti/optim/lamb.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tutti/comm/exception.h"
#include "tutti/optim/test_layers.h"

namespace tutti {
namespace {

using torch::optim::OptimizerParamGroup;

/// One parameter's steps in plain numbers.
struct Reference {
  std::vector<double> w;
  std::vector<double> m = std::vector<double>(w.size(), 0.0);
  std::vector<double> s = std::vector<double>(w.size(), 0.0);
  int steps = 0;

  void step(const std::vector<double>& g, const LambOptions& options, bool adapt, double weight_decay) {
    ++steps;
    const auto [beta1, beta2] = options.betas();
    std::vector<double> u(w.size());
    for (std::size_t i = 0; i < w.size(); ++i) {
      m[i] = beta1 * m[i] + (1 - beta1) * g[i];
      s[i] = beta2 * s[i] + (1 - beta2) * g[i] * g[i];
      const double mean = options.bias_correction() ? m[i] / (1 - std::pow(beta1, steps)) : m[i];
      const double square = options.bias_correction() ? s[i] / (1 - std::pow(beta2, steps)) : s[i];
      u[i] = mean / (std::sqrt(square) + options.eps()) + weight_decay * w[i];
    }
    const double trust =
        adapt ? std::min(std::max(length(w) / length(u), options.min_trust()), options.max_trust()) : 1;
    for (std::size_t i = 0; i < w.size(); ++i) {
      w[i] -= options.lr() * trust * u[i];
    }
  }
};

TEST(Lamb, IsWhatThePaperSays) {
  for (const auto& options : std::vector<LambOptions>{
           LambOptions(0.05),
           LambOptions(0.05).weight_decay(0).betas({0.7, 0.9}).eps(1e-3),
           LambOptions(0.05).bias_correction(false),
           LambOptions(0.05).max_trust(0.4),
           LambOptions(0.05).min_trust(3),
           LambOptions(0.05).weight_decay(0.3).adapt(Parameters::all).decay(Parameters::all),
           LambOptions(0.05).weight_decay(0.3).adapt(Parameters::all).decay(Parameters::none),
       }) {
    auto parameters = layers();
    std::vector<Reference> references{{values(parameters[0])}, {values(parameters[1])}};
    Lamb optimizer(parameters, options);
    for (int step = 0; step < 7; ++step) {
      set_gradients(parameters, step);
      for (std::size_t i = 0; i < references.size(); ++i) {
        const bool decays = optim::includes(options.decay(), parameters[i]);
        references[i].step(values(parameters[i].grad()), options, optim::includes(options.adapt(), parameters[i]),
                           decays ? options.weight_decay() : 0);
      }
      optimizer.step();
      expect_near(parameters[0], references[0].w, step);
      expect_near(parameters[1], references[1].w, step);
    }
  }
}

TEST(Lamb, WithoutTrustIsAdamW) {
  for (const double weight_decay : {0.0, 0.1}) {
    auto parameters = layers();
    auto same = layers();
    Lamb optimizer(parameters, LambOptions(0.01)
                                   .betas({0.8, 0.99})
                                   .eps(1e-7)
                                   .weight_decay(weight_decay)
                                   .adapt(Parameters::none)
                                   .decay(Parameters::all));
    torch::optim::AdamW adamw(same,
                              torch::optim::AdamWOptions(0.01).betas({0.8, 0.99}).eps(1e-7).weight_decay(weight_decay));
    for (int step = 0; step < 17; ++step) {
      train(optimizer, parameters, step, step + 1);
      train(adamw, same, step, step + 1);
      expect_near(parameters[0], values(same[0]), step);
      expect_near(parameters[1], values(same[1]), step);
    }
  }
}

TEST(Lamb, StepsAreAsLongAsWeightsWhateverTheGradient) {
  for (const double times : {1e-9, 1.0, 1e9}) {
    auto parameter = drawn({3, 5}, 1).requires_grad_();
    const auto before = parameter.detach().clone();
    parameter.mutable_grad() = drawn({3, 5}, 2) * times;
    Lamb(std::vector<at::Tensor>{parameter}, LambOptions(0.05)).step();
    EXPECT_NEAR((parameter - before).norm().item<double>(), 0.05 * before.norm().item<double>(), 1e-12);
  }
}

TEST(Lamb, ZeroWeightsLeaveZeroAndZeroGradientsMoveNothing) {
  auto zero = torch::zeros({3, 5}, torch::kDouble).requires_grad_();
  auto still = drawn({3, 5}, 1).requires_grad_();
  const auto before = still.detach().clone();
  zero.mutable_grad() = drawn({3, 5}, 2);
  still.mutable_grad() = torch::zeros({3, 5}, torch::kDouble);
  Lamb(std::vector<at::Tensor>{zero, still}, LambOptions(0.5).eps(1e-12).weight_decay(0)).step();
  EXPECT_TRUE(torch::allclose(zero, drawn({3, 5}, 2).sign() * -0.5, 1e-9)) << "as Adam's first step";
  EXPECT_TRUE(torch::equal(still, before));
}

TEST(Lamb, NaNsAreNotHidden) {
  auto parameter = drawn({3, 5}, 1).requires_grad_();
  parameter.mutable_grad() = drawn({3, 5}, 2);
  parameter.mutable_grad()[1][2] = std::nan("");
  Lamb(std::vector<at::Tensor>{parameter}, LambOptions(0.5).max_trust(10)).step();
  EXPECT_TRUE(parameter.isnan().all().item<bool>());
}

TEST(Lamb, GroupsHaveTheirOptions) {
  auto parameters = layers();
  auto alone = layers();
  std::vector<OptimizerParamGroup> groups;
  groups.emplace_back(std::vector<at::Tensor>{parameters[0]});
  groups.emplace_back(std::vector<at::Tensor>{parameters[1]},
                      std::make_unique<LambOptions>(LambOptions(0.3).eps(0.5).adapt(Parameters::all)));
  Lamb optimizer(groups, LambOptions(0.7));
  Lamb first({alone[0]}, LambOptions(0.7));
  Lamb second({alone[1]}, LambOptions(0.3).eps(0.5).adapt(Parameters::all));
  for (int step = 0; step < 3; ++step) {
    train(optimizer, parameters, step, step + 1);
    set_gradients(alone, step);
    first.step();
    second.step();
  }
  expect_same_bits(parameters, alone);
}

TEST(Lamb, ContinuesAfterLoading) {
  expect_continues_after_loading([](const std::vector<at::Tensor>& parameters, double times) {
    std::vector<OptimizerParamGroup> groups;
    groups.emplace_back(
        std::vector<at::Tensor>{parameters[0]},
        std::make_unique<LambOptions>(LambOptions(0.03 * times).bias_correction(times != 1).max_trust(times)));
    groups.emplace_back(std::vector<at::Tensor>{parameters[1]});
    return Lamb(groups, LambOptions(0.07 * times).betas({0.4 * times, 0.9}).adapt(Parameters::all).eps(times));
  });
}

TEST(Lamb, WhatHasNoGradientHasNoState) {
  auto parameters = layers();
  Lamb optimizer(parameters);
  set_gradients(parameters, 0);
  parameters[1].mutable_grad().reset();
  optimizer.step();
  EXPECT_EQ(optimizer.state().size(), 1U);
  EXPECT_TRUE(torch::equal(parameters[1], layers()[1]));
  set_gradients(parameters, 1);
  optimizer.step();
  const auto steps = [&](int i) {
    return static_cast<LambParamState&>(*optimizer.state().at(parameters[i].unsafeGetTensorImpl())).step();
  };
  EXPECT_EQ(steps(0), 2);
  EXPECT_EQ(steps(1), 1);
}

TEST(Lamb, ComplexParametersArePairs) {
  const auto pairs = drawn({3, 5, 2}, 1);
  auto wave = torch::view_as_complex(pairs.clone()).requires_grad_();
  auto real = pairs.clone().requires_grad_();
  Lamb optimizer({wave}, LambOptions(0.05).weight_decay(0.1));
  Lamb same({real}, LambOptions(0.05).weight_decay(0.1));
  for (int step = 0; step < 3; ++step) {
    real.mutable_grad() = drawn({3, 5, 2}, step + 5);
    wave.mutable_grad() = torch::view_as_complex(real.grad().clone());
    optimizer.step();
    same.step();
  }
  EXPECT_TRUE(torch::allclose(torch::view_as_real(wave), real, 1e-12));
}

TEST(Lamb, SparseGradientsAreRefusedBeforeAnythingChanges) {
  auto parameters = layers();
  set_gradients(parameters, 0);
  parameters[1].mutable_grad() = parameters[1].grad().to_sparse();
  Lamb optimizer(parameters);
  try {
    optimizer.step();
    ADD_FAILURE() << "accepted";
  } catch (const Exception& error) {
    EXPECT_EQ(error.code(), Code::unsupported);
    EXPECT_THAT(error.error().message, testing::HasSubstr("Lamb: parameter 1 of group 0 has a sparse gradient"));
  }
  expect_same_bits(parameters, layers());
}

TEST(Lamb, OptionsThatCannotBeAreRefused) {
  for (const auto& options : std::vector<LambOptions>{
           LambOptions(-0.1), LambOptions().betas({1, 0.9}), LambOptions().betas({0.9, -1}), LambOptions().eps(-1),
           LambOptions().weight_decay(-1), LambOptions().min_trust(2).max_trust(1)}) {
    EXPECT_THROW(Lamb(layers(), options), Exception);
  }
}

}  // namespace
}  // namespace tutti
