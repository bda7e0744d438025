// What DataParallel says of models, ranks and passes that do not fit, and what it does with buffers and hooks.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tutti/gradient/data_parallel.h"
#include "tutti/gradient/hook.h"
#include "tutti/gradient/test_models.h"
#include "tutti/gradient/test_ranks.h"

namespace tutti {
namespace {

TEST(DataParallel, NamesWhatDiffersBetweenModels) {
  on_ranks(3, [](Group& group) {
    torch::nn::Sequential net(torch::nn::Linear(5, group.rank() == Rank{2} ? 4 : 3));
    try {
      const DataParallel model(net, group);
      ADD_FAILURE() << "accepted";
    } catch (const Exception& error) {
      EXPECT_EQ(error.code(), Code::mismatch);
      EXPECT_THAT(
          error.error().message,
          testing::HasSubstr("parameter '0.weight' float32 [3, 5] of rank 0 is '0.weight' float32 [4, 5] on rank 2"));
    }
  });
}

TEST(DataParallel, RanksThatPauseDifferentlyAreTold) {
  on_ranks(2, [](Group& group) {
    Net net(1);
    DataParallel model(net, group);
    const auto backward = [&] { mean_loss(model->forward(rows_of(group.rank()))).backward(); };
    if (group.rank() == Rank{1}) {
      auto pause = model.no_sync();
      backward();
    }
    try {
      backward();
      ADD_FAILURE() << "accepted";
    } catch (const Exception& error) {
      EXPECT_EQ(error.code(), Code::mismatch);
      EXPECT_THAT(error.error().message,
                  testing::HasSubstr("rank 0 synchronizes after 1 backward passes, rank 1 after 2"));
    }
    EXPECT_FALSE(net->first->weight.grad().defined()) << "a step would go wrong";
  });
}

struct CountingImpl : torch::nn::Module {
  CountingImpl() {
    weight = register_parameter("weight", drawn({5}, 1));
    offset = register_parameter("offset", drawn({5}, 2));
    mean = register_buffer("mean", torch::zeros({5}, torch::kDouble));
    batches = register_buffer("batches", torch::zeros({}, torch::kLong));
  }
  torch::Tensor forward(const torch::Tensor& x) {
    mean.copy_(x.mean(0));
    batches += 1 + x.size(0);
    return x * weight + offset;
  }
  torch::Tensor weight, offset, mean, batches;
};
TORCH_MODULE(Counting);

TEST(DataParallel, BuffersFollowTheirPolicy) {
  for (const auto policy : {Buffers::broadcast, Buffers::average, Buffers::leave}) {
    on_ranks(3, [policy](Group& group) {
      Counting net;
      DataParallel model(net, group, {.buffers = policy});
      const auto own = rows(0, to_int(group.rank()) + 1);
      mean_loss(model->forward(own)).backward();
      auto expected = (policy == Buffers::leave ? own : rows(0, 1)).mean(0);
      if (policy == Buffers::average) {
        expected = (rows(0, 1).mean(0) + rows(0, 2).mean(0) + rows(0, 3).mean(0)) / 3;
      }
      EXPECT_TRUE(torch::allclose(net->mean, expected, 1e-12));
      EXPECT_EQ(net->batches.item<std::int64_t>(), policy == Buffers::leave ? 2 + to_int(group.rank()) : 2);
    });
  }
}

TEST(DataParallel, GradientsTravelInHalfTheBytes) {
  for (const auto type : {torch::kHalf, torch::kBFloat16}) {
    on_ranks(3, [type](Group& group) {
      Net net(1);
      Net reference(1);
      DataParallel model(net, group, small_buckets({.hook = cast_hook(type)}));
      for (int step = 0; step < 3; ++step) {
        net->zero_grad();
        reference->zero_grad();
        mean_loss(model->forward(rows_of(group.rank()))).backward();
        mean_loss(reference->forward(rows_of_all(group))).backward();
        const auto& gradient = net->first->weight.grad();
        EXPECT_TRUE(torch::allclose(gradient, reference->first->weight.grad(), 0.02, 1e-3));
        EXPECT_TRUE(torch::equal(gradient, gradient.to(type).to(torch::kDouble))) << "was not sent as that type";
      }
    });
  }
}

/// Throws in backward.
struct Trap : torch::autograd::Function<Trap> {
  static torch::Tensor forward(torch::autograd::AutogradContext*, const torch::Tensor& x) { return x.clone(); }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*, torch::autograd::variable_list) {
    throw std::runtime_error("out of luck");
  }
};

TEST(DataParallel, ABackwardThatFailedBeforeItSentAnythingCanBeReplaced) {
  on_ranks(2, [](Group& group) {
    Net net(1);
    Net reference(1);
    DataParallel model(net, group);  // one bucket: nothing leaves before the end
    const auto x = rows_of(group.rank());
    if (group.rank() == Rank{1}) {
      EXPECT_THROW(mean_loss(net->second(Trap::apply(torch::tanh(net->first(x))))).backward(), std::runtime_error);
      net->zero_grad();
    }
    mean_loss(model->forward(x)).backward();
    mean_loss(reference->forward(rows_of_all(group))).backward();
    expect_same_gradients(*net, *reference);
  });
}

TEST(DataParallel, ABackwardThatIsReplacedHasSentItsBuffersOnce) {
  on_ranks(2, [](Group& group) {
    Counting net;
    DataParallel model(net, group);
    const auto x = rows(to_int(group.rank()), to_int(group.rank()) + 2);
    if (group.rank() == Rank{1}) {
      // The weight's gradient has come when it fails, and the buffers are on their way.
      const auto comes_last = Trap::apply(net->offset * 1);
      const auto comes_first = x * net->weight;
      EXPECT_THROW(mean_loss(comes_first + comes_last).backward(), std::runtime_error);
      net->zero_grad();
    }
    mean_loss(model->forward(x)).backward();
    EXPECT_TRUE(torch::equal(net->mean, rows(0, 2).mean(0))) << "rank 0's";
    EXPECT_EQ(net->batches.item<std::int64_t>(), 3);
    net->zero_grad();
    mean_loss(model->forward(x)).backward();  // ranks are where the others are
    EXPECT_EQ(net->batches.item<std::int64_t>(), 6);
  });
}

TEST(DataParallel, ABackwardThatFailedHalfwayIsHeardOfEverywhere) {
  on_ranks(3, [](Group& group) {
    Net net(1);
    DataParallel model(net, group, small_buckets());
    const auto x = rows_of(group.rank());
    const auto both = [&] {
      const auto early = model->forward(x);
      return mean_loss(early + model->other_way(x));  // whose gradients come first
    };
    both().backward();
    net->zero_grad();
    const auto before = net->first->weight.detach().clone();
    // By another group: what ends this one must not reach a rank that is still in the pass before.
    std::vector<Rank> all;
    for (int rank = 0; rank < group.size(); ++rank) {
      all.push_back(Rank{rank});
    }
    const auto other = group.subgroup(all);
    other->barrier().wait();
    if (group.rank() == Rank{1}) {
      const auto trapped = net->second(Trap::apply(torch::tanh(net->first(x))));
      const auto sent_first = net->spare(torch::ones({kRows, 7}, torch::kDouble));
      EXPECT_THROW(mean_loss(trapped + sent_first).backward(), std::runtime_error);
    } else {
      EXPECT_THROW(both().backward(), Exception);
    }
    EXPECT_THROW(mean_loss(model->forward(x)).backward(), Exception) << "there is no way on";
    EXPECT_TRUE(torch::equal(net->first->weight, before));
  });
}

TEST(DataParallel, WhatCannotBeIsRefused) {
  on_ranks(1, [](Group& group) {
    Net net(1);
    DataParallel model(net, group);
    EXPECT_THROW((void)model.weigh(torch::ones({}), 3), Exception);
    EXPECT_THROW(model.join(), Exception);
    EXPECT_THROW((void)cast_hook(torch::kDouble), Exception);
    EXPECT_THROW(DataParallel(std::shared_ptr<NetImpl>(), group), Exception);
    EXPECT_FALSE(model.report());
    const auto hook = cast_hook(torch::kHalf);
    {
      const DataParallel first(net, group, {.hook = hook});
      EXPECT_THROW(DataParallel(net, group, {.hook = hook}), Exception) << "it remembers the first one's buckets";
    }
    EXPECT_NO_THROW(DataParallel(net, group, {.hook = hook}));
    DataParallel counted(net, group, {.mean = Mean::per_sample});
    EXPECT_THROW((void)counted.weigh(torch::ones({}), -1), Exception);
  });
}

}  // namespace
}  // namespace tutti
