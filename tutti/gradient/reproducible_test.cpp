// Bits that depend on the microbatches alone.

#include <gtest/gtest.h>

#include "tutti/comm/world.h"
#include "tutti/gradient/data_parallel.h"
#include "tutti/gradient/hook.h"
#include "tutti/gradient/test_models.h"
#include "tutti/gradient/test_ranks.h"

namespace tutti {
namespace {

constexpr int kMicrobatches = 8;

using Weights = std::vector<torch::Tensor>;
/// What a microbatch is trained on: adds to gradients.
using Backward = std::function<void(Net& net, int microbatch)>;

torch::Tensor rows_for(const Net& net, int microbatch) {
  return rows(microbatch * 3, microbatch * 3 + 3).to(net->first->weight.scalar_type());
}

void plain(Net& net, int microbatch) { mean_loss(net->forward(rows_for(net, microbatch))).backward(); }

/// `first` gets a gradient from each of two inner passes, `spare` only from some microbatches.
void checkpointed(Net& net, int microbatch) {
  const auto x = rows_for(net, microbatch);
  const auto hidden = Checkpoint::apply(
      x.detach().requires_grad_(),
      Checkpoint::Part([net](const torch::Tensor& in) mutable { return torch::tanh(net->first->forward(in)); }));
  auto y = Checkpoint::apply(hidden, Checkpoint::Part([net, x](const torch::Tensor& in) mutable {
                               return net->second->forward(in + torch::tanh(net->first->forward(x)));
                             }));
  if (microbatch % 3 == 1) {
    y = y + net->other_way(x);
  }
  mean_loss(y).backward();
}

struct Case {
  torch::Dtype type = torch::kFloat;
  Backward backward = plain;
  std::size_t bucket_bytes = 100;
  Mean mean = Mean::per_pass;
  int microbatches = kMicrobatches;
};

/// Trains on all microbatches in every step, dealt out to the ranks of the group in turn.
Weights trained(const Group& group, const Case& how, int steps) {
  Net net(1);
  net->to(how.type);
  DataParallel model(net, group,
                     {.bucket_bytes = how.bucket_bytes,
                      .first_bucket_bytes = how.bucket_bytes / 2,
                      .mean = how.mean,
                      .reduction = Reduction::reproducible});
  torch::optim::Adam optimizer(net->parameters(), 0.01);
  for (int step = 0; step < steps; ++step) {
    optimizer.zero_grad(step % 2 == 0);
    for (int i = to_int(group.rank()); i < how.microbatches; i += group.size()) {
      std::optional<DataParallelBase::Pause> pause;
      if (i + group.size() < how.microbatches) {
        pause.emplace(model.no_sync());
      }
      how.backward(net, i);
    }
    optimizer.step();
  }
  Weights weights;
  for (const auto& parameter : net->parameters()) {
    weights.push_back(parameter.detach().clone());
  }
  return weights;
}

void expect_same_bits_everywhere(const Case& how, const Case& alone, int steps) {
  Weights expected;
  run_ranks(1, [&](Group& group) { expected = trained(group, alone, steps); });
  for (const int ranks : {1, 2, 3, 4, 8}) {
    on_ranks(ranks, [&](Group& group) {
      const auto weights = trained(group, how, steps);
      ASSERT_EQ(weights.size(), expected.size());
      for (std::size_t i = 0; i < weights.size(); ++i) {
        EXPECT_TRUE(torch::equal(weights[i], expected[i])) << "parameter " << i << " on " << group.size() << " ranks";
      }
    });
  }
}

TEST(Reproducible, AHundredStepsOnAnyNumberOfRanks) { expect_same_bits_everywhere({}, {.bucket_bytes = 100000}, 100); }

TEST(Reproducible, InFloat64) {
  expect_same_bits_everywhere({.type = torch::kDouble, .bucket_bytes = 300}, {.type = torch::kDouble}, 10);
}

TEST(Reproducible, GradientsThatComeTwiceAndSometimes) {
  expect_same_bits_everywhere({.backward = checkpointed}, {.backward = checkpointed, .bucket_bytes = 100000}, 10);
}

TEST(Reproducible, MoreMicrobatchesThanAreKept) {
  expect_same_bits_everywhere({.backward = checkpointed, .microbatches = 23},
                              {.backward = checkpointed, .bucket_bytes = 100000, .microbatches = 23}, 5);
}

TEST(Reproducible, TheUsualSumIsAnother) {
  // Else the tests above would show nothing.
  Weights one;
  Weights other;
  const auto gradients = [](const Group& group) {
    Net net(1);
    net->to(torch::kFloat);
    DataParallel model(net, group, {.mean = Mean::per_pass});
    for (int i = to_int(group.rank()); i < kMicrobatches; i += group.size()) {
      std::optional<DataParallelBase::Pause> pause;
      if (i + group.size() < kMicrobatches) {
        pause.emplace(model.no_sync());
      }
      plain(net, i);
    }
    return net->first->weight.grad().clone();
  };
  run_ranks(1, [&](Group& group) { one = {gradients(group)}; });
  run_ranks(3, [&](Group& group) {
    const auto mine = gradients(group);
    if (group.rank() == Rank{0}) {
      other = {mine};
    }
  });
  EXPECT_TRUE(torch::allclose(one[0], other[0], 1e-4));
  EXPECT_FALSE(torch::equal(one[0], other[0]));
}

TEST(Reproducible, GradientsAreThoseOfOneProcess) {
  for (const auto mean : {Mean::per_rank, Mean::per_pass, Mean::per_sample}) {
    on_ranks(3, [mean](Group& group) {
      Net net(1);
      Net reference(1);
      DataParallel model(
          net, group,
          {.bucket_bytes = 100, .first_bucket_bytes = 50, .mean = mean, .reduction = Reduction::reproducible});
      for (int step = 0; step < 3; ++step) {
        const auto x = rows(to_int(group.rank()) * 2, to_int(group.rank()) * 2 + 2);
        const auto backward = [&](const torch::Tensor& loss) {
          (mean == Mean::per_sample ? model.weigh(loss, 2) : loss).backward();
        };
        if (step == 1) {
          auto pause = model.no_sync();
          backward(mean_loss(model->other_way(x)));
        }
        backward(mean_loss(model->forward(x)));
        if (step == 1) {
          (mean_loss(reference->other_way(rows(0, 6))) / (mean == Mean::per_rank ? 1 : 2)).backward();
        }
        (mean_loss(reference->forward(rows(0, 6))) / (step == 1 && mean != Mean::per_rank ? 2 : 1)).backward();
        expect_same_gradients(*net, *reference, "in step " + std::to_string(step));
        net->zero_grad(step == 0);
        reference->zero_grad(step == 0);
      }
    });
  }
}

TEST(Reproducible, WhatCannotBeIsRefused) {
  run_ranks(1, [](Group& group) {
    Net net(1);
    EXPECT_THROW(DataParallel(net, group, {.reduction = Reduction::reproducible, .hook = cast_hook(torch::kHalf)}),
                 Exception);
  });
}

}  // namespace
}  // namespace tutti
