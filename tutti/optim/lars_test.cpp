#include "tutti/optim/lars.h"

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
  std::vector<double> v = std::vector<double>(w.size(), 0.0);

  void step(const std::vector<double>& g, const LarsOptions& options, bool adapt, double weight_decay) {
    double trust = 1;
    if (adapt) {
      trust = options.trust_coefficient() * length(w) / (length(g) + weight_decay * length(w));
      trust = std::min(std::max(trust, options.min_trust()), options.max_trust());
    }
    for (std::size_t i = 0; i < w.size(); ++i) {
      const double scaled = trust * (g[i] + weight_decay * w[i]);
      v[i] = options.momentum() * v[i] + scaled;
      w[i] -= options.lr() * (options.nesterov() ? scaled + options.momentum() * v[i] : v[i]);
    }
  }
};

TEST(Lars, IsWhatThePaperSays) {
  for (const auto& options : std::vector<LarsOptions>{
           LarsOptions(0.7),
           LarsOptions(0.7).weight_decay(0.01).momentum(0.8),
           LarsOptions(0.7).weight_decay(0.01).nesterov(true),
           LarsOptions(0.7).weight_decay(0.01).momentum(0).trust_coefficient(0.1),
           LarsOptions(0.7).max_trust(0.0005),
           LarsOptions(0.7).min_trust(0.3),
           LarsOptions(0.7).weight_decay(0.3).adapt(Parameters::all).decay(Parameters::all),
           LarsOptions(0.7).weight_decay(0.3).adapt(Parameters::all).decay(Parameters::none),
       }) {
    auto parameters = layers();
    std::vector<Reference> references{{values(parameters[0])}, {values(parameters[1])}};
    Lars optimizer(parameters, options);
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

TEST(Lars, WithoutTrustIsSgdToTheBit) {
  for (const auto type : {at::kFloat, at::kDouble}) {
    for (const double momentum : {0.0, 0.9}) {
      for (const bool nesterov : {false, momentum > 0}) {
        auto parameters = layers(type);
        auto same = layers(type);
        Lars optimizer(parameters, LarsOptions(0.1)
                                       .momentum(momentum)
                                       .nesterov(nesterov)
                                       .weight_decay(0.01)
                                       .adapt(Parameters::none)
                                       .decay(Parameters::all));
        torch::optim::SGD sgd(same,
                              torch::optim::SGDOptions(0.1).momentum(momentum).nesterov(nesterov).weight_decay(0.01));
        for (int step = 0; step < 7; ++step) {
          train(optimizer, parameters, step, step + 1);
          train(sgd, same, step, step + 1);
          optimizer.param_groups()[0].options().set_lr(0.1 * step);  // a rate that changes acts as there
          sgd.param_groups()[0].options().set_lr(0.1 * step);
        }
        expect_same_bits(parameters, same);
      }
    }
  }
}

TEST(Lars, StepsAreAsLongAsWeightsAllowWhateverTheGradient) {
  for (const double times : {1e-9, 1.0, 1e9}) {
    auto parameter = drawn({3, 5}, 1).requires_grad_();
    const auto before = parameter.detach().clone();
    parameter.mutable_grad() = drawn({3, 5}, 2) * times;
    Lars(std::vector<at::Tensor>{parameter}, LarsOptions(0.5).trust_coefficient(0.01)).step();
    EXPECT_NEAR((parameter - before).norm().item<double>(), 0.5 * 0.01 * before.norm().item<double>(), 1e-12);
  }
}

TEST(Lars, ZeroWeightsLeaveZeroAndZeroGradientsMoveNothing) {
  auto zero = torch::zeros({3, 5}, torch::kDouble).requires_grad_();
  auto still = drawn({3, 5}, 1).requires_grad_();
  const auto before = still.detach().clone();
  zero.mutable_grad() = drawn({3, 5}, 2);
  still.mutable_grad() = torch::zeros({3, 5}, torch::kDouble);
  Lars(std::vector<at::Tensor>{zero, still}, LarsOptions(0.5)).step();
  EXPECT_TRUE(torch::equal(zero, drawn({3, 5}, 2) * -0.5));
  EXPECT_TRUE(torch::equal(still, before));
}

TEST(Lars, NaNsAreNotHidden) {
  auto parameter = drawn({3, 5}, 1).requires_grad_();
  parameter.mutable_grad() = drawn({3, 5}, 2);
  parameter.mutable_grad()[1][2] = std::nan("");
  Lars(std::vector<at::Tensor>{parameter}, LarsOptions(0.5).max_trust(10)).step();
  EXPECT_TRUE(parameter.isnan().all().item<bool>());
}

TEST(Lars, GroupsHaveTheirOptions) {
  auto parameters = layers();
  auto alone = layers();
  std::vector<OptimizerParamGroup> groups;
  groups.emplace_back(std::vector<at::Tensor>{parameters[0]});
  groups.emplace_back(std::vector<at::Tensor>{parameters[1]},
                      std::make_unique<LarsOptions>(LarsOptions(0.3).momentum(0.5).adapt(Parameters::all)));
  Lars optimizer(groups, LarsOptions(0.7));
  Lars first({alone[0]}, LarsOptions(0.7));
  Lars second({alone[1]}, LarsOptions(0.3).momentum(0.5).adapt(Parameters::all));
  for (int step = 0; step < 3; ++step) {
    train(optimizer, parameters, step, step + 1);
    set_gradients(alone, step);
    first.step();
    second.step();
  }
  expect_same_bits(parameters, alone);
}

TEST(Lars, GroupsMayComeLater) {
  auto parameters = layers();
  Lars optimizer({parameters[0]}, LarsOptions(0.7));
  optimizer.add_param_group({{parameters[1]}, std::make_unique<LarsOptions>(LarsOptions(0.3).momentum(0.5))});
  const auto& options = static_cast<LarsOptions&>(optimizer.param_groups()[1].options());
  EXPECT_EQ(options.lr(), 0.3);
  EXPECT_EQ(options.momentum(), 0.5);
}

TEST(Lars, ContinuesAfterLoading) {
  expect_continues_after_loading([](const std::vector<at::Tensor>& parameters, double times) {
    std::vector<OptimizerParamGroup> groups;
    groups.emplace_back(std::vector<at::Tensor>{parameters[0]},
                        std::make_unique<LarsOptions>(LarsOptions(0.3 * times).nesterov(times == 1).max_trust(times)));
    groups.emplace_back(std::vector<at::Tensor>{parameters[1]});
    return Lars(groups, LarsOptions(0.7 * times).momentum(0.4 * times).adapt(Parameters::all).weight_decay(times));
  });
}

TEST(Lars, ClosureGivesGradientsAndTheLoss) {
  auto parameters = layers();
  Lars optimizer(parameters, LarsOptions(0.1));
  const auto before = parameters[0].detach().clone();
  const torch::NoGradGuard no_grad;
  const auto loss = optimizer.step([&] {
    auto value = parameters[0].square().sum();
    value.backward();
    return value;
  });
  EXPECT_EQ(loss.item<double>(), before.square().sum().item<double>());
  EXPECT_FALSE(torch::equal(parameters[0], before));
  EXPECT_TRUE(torch::equal(parameters[1], layers()[1])) << "has no gradient";
}

TEST(Lars, ComplexParametersArePairs) {
  const auto pairs = drawn({3, 5, 2}, 1);
  auto wave = torch::view_as_complex(pairs.clone()).requires_grad_();
  auto real = pairs.clone().requires_grad_();
  Lars optimizer({wave}, LarsOptions(0.7).weight_decay(0.1));
  Lars same({real}, LarsOptions(0.7).weight_decay(0.1));
  for (int step = 0; step < 3; ++step) {
    const auto gradient = drawn({3, 5, 2}, step + 5);
    // Conjugated lazily, as autograd's often are.
    wave.mutable_grad() = torch::conj(torch::view_as_complex(gradient.clone()).conj().resolve_conj());
    real.mutable_grad() = gradient;
    optimizer.step();
    same.step();
  }
  EXPECT_TRUE(torch::allclose(torch::view_as_real(wave), real, 1e-12));
}

TEST(Lars, SparseGradientsAreRefusedBeforeAnythingChanges) {
  auto parameters = layers();
  set_gradients(parameters, 0);
  parameters[1].mutable_grad() = parameters[1].grad().to_sparse();
  Lars optimizer(parameters, LarsOptions(0.1));
  try {
    optimizer.step();
    ADD_FAILURE() << "accepted";
  } catch (const Exception& error) {
    EXPECT_EQ(error.code(), Code::unsupported);
    EXPECT_THAT(error.error().message, testing::HasSubstr("Lars: parameter 1 of group 0 has a sparse gradient"));
  }
  expect_same_bits(parameters, layers());
}

TEST(Lars, OptionsThatCannotBeAreRefused) {
  for (const auto& options :
       std::vector<LarsOptions>{LarsOptions(-0.1), LarsOptions(0.1).momentum(-1),
                                LarsOptions(0.1).momentum(0).nesterov(true), LarsOptions(0.1).weight_decay(-1),
                                LarsOptions(0.1).trust_coefficient(0), LarsOptions(0.1).min_trust(2).max_trust(1)}) {
    EXPECT_THROW(Lars(layers(), options), Exception);
    std::vector<OptimizerParamGroup> groups;
    groups.emplace_back(layers(), std::make_unique<LarsOptions>(options));
    EXPECT_THROW(Lars(groups, LarsOptions(0.1)), Exception);
  }
  Lars optimizer(layers(), LarsOptions(0.1));
  EXPECT_THROW(optimizer.add_param_group({layers(), std::make_unique<torch::optim::SGDOptions>(0.1)}), Exception);
  EXPECT_EQ(optimizer.param_groups().size(), 1U);
}

}  // namespace
}  // namespace tutti
