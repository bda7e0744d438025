#include "tutti/gradient/clip.h"

#include <gtest/gtest.h>
#include <torch/nn/utils/clip_grad.h>

#include "tutti/gradient/test_models.h"
#include "tutti/gradient/test_ranks.h"

namespace tutti {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

void set_gradients(Net& net) {
  int seed = 9;
  for (auto& parameter : net->parameters()) {
    parameter.mutable_grad() = drawn(parameter.sizes(), seed++);
  }
  net->spare->bias.mutable_grad().reset();
}

TEST(Clip, AsLibTorchDoesOnOneProcess) {
  for (const double norm : {1.0, 2.0, 3.5, kInfinity}) {
    for (const double largest : {0.5, 1e6}) {
      Net net(1);
      Net reference(1);
      set_gradients(net);
      set_gradients(reference);
      const auto expected = torch::nn::utils::clip_grad_norm_(reference->parameters(), largest, norm);
      EXPECT_NEAR(clip_gradients(*net, largest, {.norm = norm}), expected, 1e-12 * expected);
      for (const auto& item : reference->named_parameters()) {
        if (item.value().grad().defined()) {
          // LibTorch divides by a little more than the norm.
          EXPECT_TRUE(torch::allclose(net->named_parameters()[item.key()].grad(), item.value().grad(), 1e-5));
        }
      }
    }
  }
}

/// A model of which `first.weight` is divided over tp, by rows; the rest is on all ranks.
TEST(Clip, PartsOfParametersCountOnce) {
  on_ranks(4, [](Group& group) {
    const Mesh mesh(group, "dp=2,tp=2");
    Net whole(1);
    set_gradients(whole);
    const auto expected = clip_gradients(*whole, 0.7);
    struct PartImpl : torch::nn::Module {
      PartImpl(const Net& net, std::int64_t part) {
        for (const auto& item : net->named_parameters()) {
          auto name = item.key();
          std::replace(name.begin(), name.end(), '.', '_');
          const bool divided = name == "first_weight";
          const auto gradient = item.value().grad();
          const auto mine = [&](const torch::Tensor& all) {
            return divided ? all.slice(0, part * 4, part * 4 + 4) : all;
          };
          auto& own = register_parameter(name, mine(item.value().detach()).clone());
          own.mutable_grad() = gradient.defined() ? mine(gradient).clone() : gradient;
        }
      }
    };
    Net again(1);
    set_gradients(again);
    PartImpl part(again, to_int(group.rank()) % 2);
    const auto norm = clip_gradients(part, mesh, 0.7, {.sharded = {{"first_weight", {"tp"}}}});
    EXPECT_NEAR(norm, expected, 1e-12 * expected);
    const auto rows =
        whole->first->weight.grad().slice(0, to_int(group.rank()) % 2 * 4, to_int(group.rank()) % 2 * 4 + 4);
    EXPECT_TRUE(torch::allclose(part.named_parameters()["first_weight"].grad(), rows, 1e-12));
    EXPECT_TRUE(torch::allclose(part.named_parameters()["second_bias"].grad(), whole->second->bias.grad(), 1e-12));
  });
}

TEST(Clip, WhatIsNoNumberIsNotHidden) {
  for (const double norm : {2.0, kInfinity}) {
    Net net(1);
    set_gradients(net);
    net->second->bias.mutable_grad()[1] = std::nan("");
    const auto before = net->first->weight.grad().clone();
    EXPECT_THROW(clip_gradients(*net, 1, {.norm = norm, .error_if_nonfinite = true}), Exception);
    EXPECT_TRUE(torch::equal(net->first->weight.grad(), before));
    EXPECT_TRUE(std::isnan(clip_gradients(*net, 1, {.norm = norm})));
    EXPECT_TRUE(net->first->weight.grad().isnan().all().item<bool>());
  }
}

TEST(Clip, WhatCannotBeIsRefused) {
  Net net(1);
  EXPECT_THROW(clip_gradients(*net, -1), Exception);
  EXPECT_THROW(clip_gradients(*net, 1, {.norm = 0}), Exception);
  EXPECT_THROW(clip_gradients(*net, 1, {.sharded = {{"*", {"tp"}}}}), Exception);
  EXPECT_EQ(clip_gradients(*net, 1), 0) << "no gradients at all";
}

}  // namespace
}  // namespace tutti
