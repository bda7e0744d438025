#include "tutti/optim/master_weights.h"

#include <cmath>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "tutti/comm/world.h"
#include "tutti/optim/lamb.h"
#include "tutti/optim/test_layers.h"

namespace tutti {
namespace {

constexpr std::int64_t kRows = 12;

/// Learns a line from rows of a batch; all of it in the type of its weights.
struct LineImpl : torch::nn::Module {
  explicit LineImpl(at::ScalarType type) {
    weight = register_parameter("weight", torch::ones({5}).to(type));
    bias = register_parameter("bias", torch::ones({1}).to(type));
  }
  torch::Tensor loss(std::int64_t from, std::int64_t to) const {
    const auto x = drawn({kRows, 5}, 3, weight.scalar_type()).slice(0, from, to);
    const auto wanted = (x * drawn({5}, 4, weight.scalar_type())).sum(1) + 0.5;
    return ((x * weight).sum(1) + bias - wanted).square().mean();
  }
  torch::Tensor weight, bias;
};
TORCH_MODULE(Line);

double loss_in_float32(const Line& line) {
  Line copy(torch::kFloat);
  const torch::NoGradGuard no_grad;
  copy->weight.copy_(line->weight);
  copy->bias.copy_(line->bias);
  return copy->loss(0, kRows).item<double>();
}

/// So small that bfloat16 loses every step.
constexpr double kRate = 3e-4;
constexpr int kSteps = 3000;

double trained_plainly(at::ScalarType type) {
  Line line(type);
  torch::optim::SGD optimizer(line->parameters(), kRate);
  for (int step = 0; step < kSteps; ++step) {
    optimizer.zero_grad();
    line->loss(0, kRows).backward();
    optimizer.step();
  }
  return loss_in_float32(line);
}

TEST(MasterWeights, FollowFloat32WhereBfloat16Stalls) {
  const double before = loss_in_float32(Line(torch::kFloat));
  const double wanted = trained_plainly(torch::kFloat);
  const double stalled = trained_plainly(torch::kBFloat16);
  Line line(torch::kBFloat16);
  MasterWeights masters(*line);
  torch::optim::SGD optimizer(masters.parameters(), kRate);
  for (int step = 0; step < kSteps; ++step) {
    masters.zero_grad();
    line->loss(0, kRows).backward();
    masters.step(optimizer);
  }
  EXPECT_LT(wanted, before / 10) << "or the test shows nothing";
  EXPECT_LT(std::abs(loss_in_float32(line) - wanted), before / 50);
  EXPECT_EQ(stalled, before);
}

TEST(MasterWeights, Float16WithAScaleFollowsFloat32) {
  const double before = loss_in_float32(Line(torch::kFloat));
  const double wanted = trained_plainly(torch::kFloat);
  Line line(torch::kHalf);
  MasterWeights masters(*line);
  torch::optim::SGD optimizer(masters.parameters(), kRate);
  LossScale scale(std::nullopt, {.growth_interval = 100});
  int skipped = 0;
  for (int step = 0; step < kSteps; ++step) {
    masters.zero_grad();
    scale.scale(line->loss(0, kRows)).backward();
    skipped += masters.step(optimizer, scale) ? 0 : 1;
  }
  EXPECT_LT(std::abs(loss_in_float32(line) - wanted), before / 50);
  EXPECT_GT(skipped, 0) << "the scale did not look for its limit";
  EXPECT_LT(skipped, kSteps / 20);
}

TEST(MasterWeights, RanksStayEqualAndFollowOne) {
  for (const auto type : {torch::kBFloat16, torch::kHalf}) {
    run_ranks(3, [type](Group& group) {
      Line line(type);
      MasterWeights masters(*line);
      Lamb optimizer(masters.parameters(), LambOptions(1e-3));
      Line alone(torch::kFloat);
      Lamb reference(alone->parameters(), LambOptions(1e-3));
      LossScale scale(group, {.initial = 16});
      const auto rows = kRows / group.size();
      const auto first = to_int(group.rank()) * rows;
      for (int step = 0; step < 100; ++step) {
        masters.zero_grad();
        scale.scale(line->loss(first, first + rows)).backward();
        for (const auto& parameter : line->parameters()) {
          group.all_reduce(parameter.grad(), ReduceOp::avg).wait();
        }
        EXPECT_TRUE(masters.step(optimizer, scale));
        reference.zero_grad();
        alone->loss(0, kRows).backward();
        reference.step();
      }
      for (std::size_t i = 0; i < 2; ++i) {
        const auto& master = masters.parameters()[i];
        EXPECT_TRUE(torch::allclose(master, alone->parameters()[i], 0.01, 0.005));
        auto of_rank_0 = master.detach().clone();
        group.broadcast(of_rank_0).wait();
        EXPECT_TRUE(torch::equal(master, of_rank_0));
      }
    });
  }
}

TEST(MasterWeights, AreMadeOnlyWhereNeededAndOnceEach) {
  auto half = drawn({3}, 1, at::kHalf).requires_grad_();
  auto brain = drawn({3}, 2, at::kBFloat16).requires_grad_();
  auto whole = drawn({3}, 3, at::kFloat).requires_grad_();
  auto twice = drawn({3}, 4, at::kDouble).requires_grad_();
  auto frozen = drawn({3}, 5, at::kHalf);
  const MasterWeights masters({half, brain, whole, frozen, twice, brain});
  ASSERT_EQ(masters.parameters().size(), 4U);
  for (const auto& small : {half, brain}) {
    EXPECT_EQ(masters.of(small).scalar_type(), torch::kFloat);
    EXPECT_TRUE(torch::equal(masters.of(small), small.to(torch::kFloat)));
    EXPECT_TRUE(masters.of(small).is_leaf() && masters.of(small).requires_grad());
  }
  EXPECT_TRUE(masters.of(whole).is_same(whole));
  EXPECT_TRUE(masters.of(twice).is_same(twice));
  EXPECT_THROW(masters.of(frozen), Exception);
}

TEST(MasterWeights, GradientsAreThereWhereTheModelHasThem) {
  auto some = drawn({3, 5}, 1, at::kBFloat16).requires_grad_();
  auto other = drawn({7}, 2, at::kBFloat16).requires_grad_();
  MasterWeights masters({some, other});
  some.mutable_grad() = drawn({3, 5}, 3, at::kBFloat16);
  masters.take_gradients();
  EXPECT_EQ(masters.of(some).grad().scalar_type(), torch::kFloat);
  EXPECT_TRUE(torch::equal(masters.of(some).grad(), some.grad().to(torch::kFloat)));
  EXPECT_FALSE(masters.of(other).grad().defined());

  other.mutable_grad() = some.grad().flatten().slice(0, 0, 7).to_sparse();
  some.mutable_grad() = drawn({3, 5}, 4, at::kBFloat16);
  masters.take_gradients();
  EXPECT_TRUE(torch::equal(masters.of(some).grad(), some.grad().to(torch::kFloat))) << "taken, not added";
  EXPECT_TRUE(masters.of(other).grad().is_sparse());

  some.mutable_grad().reset();
  masters.take_gradients();
  EXPECT_FALSE(masters.of(some).grad().defined());
  masters.zero_grad();
  EXPECT_FALSE(other.grad().defined() || masters.of(other).grad().defined());
}

TEST(MasterWeights, ZeroGradCanKeepTheMemory) {
  auto parameter = drawn({7}, 2, at::kBFloat16).requires_grad_();
  parameter.mutable_grad() = drawn({7}, 3, at::kBFloat16);
  MasterWeights masters({parameter});
  masters.take_gradients();
  masters.zero_grad(/*set_to_none=*/false);
  EXPECT_EQ(parameter.grad().abs().sum().item<double>(), 0);
  EXPECT_EQ(masters.of(parameter).grad().abs().sum().item<double>(), 0);
}

TEST(MasterWeights, RoundingIsNotTakenBackUnlessAsked) {
  auto parameter = torch::ones({1}, torch::kBFloat16).requires_grad_();
  MasterWeights masters({parameter});
  const torch::NoGradGuard no_grad;
  at::Tensor(masters.of(parameter)).fill_(1.001);  // bfloat16 has 1 and 1.0078125
  masters.give_weights();
  EXPECT_EQ(parameter.item<double>(), 1);
  EXPECT_FLOAT_EQ(masters.of(parameter).item<float>(), 1.001F);
  masters.reload();
  EXPECT_EQ(masters.of(parameter).item<float>(), 1);
}

TEST(MasterWeights, ClosuresSeeTheModelAsItIsThen) {
  Line line(torch::kBFloat16);
  MasterWeights masters(*line);
  torch::optim::LBFGS optimizer(masters.parameters(), torch::optim::LBFGSOptions(0.5).max_iter(7));
  int calls = 0;
  const double before = loss_in_float32(line);
  const auto loss = masters.step(optimizer, [&] {
    ++calls;
    masters.zero_grad();
    auto value = line->loss(0, kRows);
    value.backward();
    return value;
  });
  EXPECT_GT(calls, 1);
  EXPECT_NEAR(loss.item<double>(), before, before * 0.02);
  EXPECT_LT(loss_in_float32(line), before / 2);
}

TEST(MasterWeights, ContinueAfterLoading) {
  const auto make = [] {
    auto parameters = layers(at::kBFloat16);
    parameters.push_back(drawn({3}, 9, at::kFloat).requires_grad_());
    return parameters;
  };
  const auto train_some = [](MasterWeights& masters, torch::optim::Optimizer& optimizer,
                             std::vector<at::Tensor>& parameters, int from, int to) {
    for (int step = from; step < to; ++step) {
      set_gradients(parameters, step);
      masters.step(optimizer);
    }
  };
  auto parameters = make();
  MasterWeights masters(parameters);
  torch::optim::Adam optimizer(masters.parameters(), 1e-3);
  train_some(masters, optimizer, parameters, 0, 5);
  std::stringstream file;
  std::stringstream optimizer_file;
  torch::save(masters, file);
  torch::save(optimizer, optimizer_file);
  auto copies = make();
  {
    const torch::NoGradGuard no_grad;
    copies[2].copy_(parameters[2]);  // a float32 parameter is the model's to save
  }
  MasterWeights loaded(copies);
  torch::load(loaded, file);
  expect_same_bits(copies, parameters);
  torch::optim::Adam same(loaded.parameters(), 1e-3);
  torch::load(same, optimizer_file);
  train_some(masters, optimizer, parameters, 5, 9);
  train_some(loaded, same, copies, 5, 9);
  expect_same_bits(loaded.parameters(), masters.parameters());
  expect_same_bits(copies, parameters);
}

TEST(MasterWeights, MastersOfAnotherModelAreRefused) {
  auto parameters = layers(at::kBFloat16);
  MasterWeights masters(parameters);
  std::string saved;
  {
    std::stringstream file;
    torch::save(masters, file);
    saved = file.str();
  }
  const auto refusal = [&](const std::vector<at::Tensor>& others) -> std::string {
    MasterWeights other(others);
    std::istringstream file(saved);
    try {
      torch::load(other, file);
    } catch (const Exception& error) {
      return error.error().message;
    }
    return "";
  };
  EXPECT_EQ(refusal(layers(at::kHalf)), "");
  EXPECT_THAT(refusal({parameters[0]}), testing::HasSubstr("2 parameters were saved, and there are 1"));
  auto turned = drawn({5, 3}, 1, at::kBFloat16).requires_grad_();
  const auto before = turned.detach().clone();
  EXPECT_THAT(refusal({turned, parameters[1]}), testing::HasSubstr("parameter 0 was saved with another shape or type"));
  EXPECT_TRUE(torch::equal(turned, before));
  EXPECT_THAT(refusal({parameters[0], layers(at::kFloat)[1]}), testing::HasSubstr("parameter 1 was saved"));
}

}  // namespace
}  // namespace tutti
