#include "tutti/gradient/data_parallel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tutti/gradient/hook.h"
#include "tutti/gradient/test_models.h"
#include "tutti/gradient/test_ranks.h"

namespace tutti {
namespace {

class DataParallelTest : public testing::TestWithParam<int> {};

INSTANTIATE_TEST_SUITE_P(Ranks, DataParallelTest, testing::Values(1, 2, 3, 4));

TEST_P(DataParallelTest, GradientsAreThoseOfOneProcess) {
  on_ranks(GetParam(), [](Group& group) {
    Net net(1);
    Net reference(1);
    DataParallel model(net, group, small_buckets());
    torch::optim::SGD optimizer(net->parameters(), 0.1);
    torch::optim::SGD same(reference->parameters(), 0.1);
    for (int step = 0; step < 7; ++step) {
      optimizer.zero_grad(step % 2 == 0);
      same.zero_grad(step % 2 == 0);
      mean_loss(model->forward(rows_of(group.rank()))).backward();
      mean_loss(reference->forward(rows_of_all(group))).backward();
      expect_same_gradients(*net, *reference, "in step " + std::to_string(step));
      optimizer.step();
      same.step();
      EXPECT_EQ(model.report()->step, static_cast<std::uint64_t>(step + 1));
    }
  });
}

TEST_P(DataParallelTest, EveryRankStartsAsRankZero) {
  on_ranks(GetParam(), [](Group& group) {
    Net net(to_int(group.rank()) + 1);
    const Net reference(1);
    const DataParallel model(net, group);
    for (const auto& item : reference->named_parameters()) {
      EXPECT_TRUE(torch::equal(net->named_parameters()[item.key()], item.value())) << item.key();
    }
  });
}

TEST_P(DataParallelTest, AccumulationSendsOnceAndForgetsNothing) {
  on_ranks(GetParam(), [](Group& group) {
    Net net(1);
    Net reference(1);
    DataParallel model(net, group, small_buckets());
    for (int step = 0; step < 5; ++step) {
      net->zero_grad();
      reference->zero_grad();
      {
        auto pause = model.no_sync();
        // `spare` has its part in this pass alone.
        mean_loss(model->other_way(rows_of(group.rank()))).backward();
        mean_loss(model->forward(rows_of(group.rank()))).backward();
      }
      mean_loss(model->forward(rows_of(group.rank()) * 2)).backward();
      EXPECT_EQ(model.report()->passes, 3U);
      EXPECT_EQ(model.report()->step, static_cast<std::uint64_t>(step + 1));
      mean_loss(reference->other_way(rows_of_all(group))).backward();
      mean_loss(reference->forward(rows_of_all(group))).backward();
      mean_loss(reference->forward(rows_of_all(group) * 2)).backward();
      expect_same_gradients(*net, *reference, "in step " + std::to_string(step));
    }
  });
}

TEST_P(DataParallelTest, GraphsMayDifferByRankAndByStep) {
  on_ranks(GetParam(), [](Group& group) {
    Net net(1);
    Net reference(1);
    DataParallel model(net, group, small_buckets());
    const auto takes_other_way = [&](int rank, int step) {
      return step < 4 ? false : step < 12 ? rank == step % group.size() : step < 20 ? true : (step + rank) % 3 == 0;
    };
    for (int step = 0; step < 30; ++step) {
      net->zero_grad();
      reference->zero_grad();
      const auto loss = [&](Net& of, int rank) {
        const auto x = rows_of(Rank{rank});
        return mean_loss(takes_other_way(rank, step) ? of->other_way(x) : of->forward(x));
      };
      loss(net, to_int(group.rank())).backward();
      for (int rank = 0; rank < group.size(); ++rank) {
        (loss(reference, rank) / group.size()).backward();
      }
      expect_same_gradients(*net, *reference, "in step " + std::to_string(step));
    }
  });
}

TEST_P(DataParallelTest, BackwardInsideBackward) {
  on_ranks(GetParam(), [](Group& group) {
    Net net(1);
    Net reference(1);
    DataParallel model(net, group, small_buckets());
    // Every gradient of a parameter comes from an inner pass; `first` from two of them.
    const auto forward = [](Net of, const torch::Tensor& x) {
      const auto leaf = x.detach().requires_grad_();
      const auto hidden = Checkpoint::apply(leaf, Checkpoint::Part([of](const torch::Tensor& in) mutable {
                                              return torch::tanh(of->first->forward(in));
                                            }));
      return Checkpoint::apply(hidden, Checkpoint::Part([of, x](const torch::Tensor& in) mutable {
                                 return of->second->forward(in + torch::tanh(of->first->forward(x)));
                               }));
    };
    for (int step = 0; step < 5; ++step) {
      net->zero_grad();
      reference->zero_grad();
      mean_loss(forward(net, rows_of(group.rank()))).backward();
      mean_loss(forward(reference, rows_of_all(group))).backward();
      expect_same_gradients(*net, *reference, "in step " + std::to_string(step));
      EXPECT_EQ(model.report()->step, static_cast<std::uint64_t>(step + 1)) << "one synchronization for each backward";
    }
  });
}

TEST_P(DataParallelTest, EverySampleCountsOnce) {
  on_ranks(GetParam(), [](Group& group) {
    Net net(1);
    Net reference(1);
    DataParallel model(net, group, small_buckets({.mean = Mean::per_sample}));
    // Rank r has 2 r + 1 rows: the first one alone in a paused pass, the others in another.
    const std::int64_t mine = to_int(group.rank());
    const auto begin = mine * mine;
    {
      auto pause = model.no_sync();
      model.weigh(mean_loss(model->forward(rows(begin, begin + 1))), 1).backward();
    }
    if (mine > 0) {
      model.weigh(mean_loss(model->forward(rows(begin + 1, begin + 1 + 2 * mine))), static_cast<double>(2 * mine))
          .backward();
    } else {
      model.weigh(mean_loss(model->forward(rows(0, 1))), 0).backward();
    }
    mean_loss(reference->forward(rows(0, group.size() * group.size()))).backward();
    expect_same_gradients(*net, *reference);
  });
}

TEST_P(DataParallelTest, EveryPassCountsOnce) {
  on_ranks(GetParam(), [](Group& group) {
    Net net(1);
    Net reference(1);
    DataParallel model(net, group, small_buckets({.mean = Mean::per_pass}));
    const int mine = to_int(group.rank()) + 1;  // passes
    int all = 0;
    for (int rank = 0; rank < group.size(); ++rank) {
      all += rank + 1;
    }
    for (int pass = 0; pass < mine; ++pass) {
      std::optional<DataParallelBase::Pause> pause;
      if (pass + 1 < mine) {
        pause.emplace(model.no_sync());
      }
      mean_loss(model->forward(rows_of(group.rank()) + pass)).backward();
    }
    for (int rank = 0; rank < group.size(); ++rank) {
      for (int pass = 0; pass <= rank; ++pass) {
        (mean_loss(reference->forward(rows_of(Rank{rank}) + pass)) / all).backward();
      }
    }
    expect_same_gradients(*net, *reference);
  });
}

TEST_P(DataParallelTest, WhatNobodyUsesStaysAsItWas) {
  for (const auto reduction : {Reduction::usual, Reduction::reproducible}) {
    on_ranks(GetParam(), [reduction](Group& group) {
      Net net(1);
      DataParallel model(net, group, small_buckets({.mean = Mean::per_pass, .reduction = reduction}));
      mean_loss(model->other_way(rows_of(group.rank()))).backward();
      const auto before = net->spare->weight.grad().clone();
      for (int step = 0; step < 6; ++step) {
        for (const auto& parameter : net->first->parameters()) {
          parameter.mutable_grad().reset();
        }
        {
          auto pause = model.no_sync();
          mean_loss(model->forward(rows_of(group.rank()))).backward();
        }
        mean_loss(model->forward(rows_of(group.rank()))).backward();
        EXPECT_TRUE(torch::equal(net->spare->weight.grad(), before)) << "in step " << step;
      }
    });
  }
}

TEST_P(DataParallelTest, RanksThatRunOutOfDataJoin) {
  for (const bool stepping : {false, true}) {
    on_ranks(GetParam(), [stepping](Group& group) {
      Net net(1);
      Net reference(1);
      DataParallel model(net, group, small_buckets({.uneven_data = true}));
      torch::optim::Adam optimizer(net->parameters(), 0.01);
      torch::optim::Adam same(reference->parameters(), 0.01);
      const auto batches = [](int rank) { return 2 + 3 * rank; };
      const auto step_and_zero = [&] {
        optimizer.step();
        optimizer.zero_grad();
      };
      for (int batch = 0; batch < batches(to_int(group.rank())); ++batch) {
        mean_loss(model->forward(rows_of(group.rank()) + batch)).backward();
        step_and_zero();
      }
      model.join(stepping ? std::function<void()>(step_and_zero) : nullptr);
      for (int batch = 0; batch < batches(group.size() - 1); ++batch) {
        int active = 0;
        for (int rank = 0; rank < group.size(); ++rank) {
          active += batch < batches(rank) ? 1 : 0;
        }
        for (int rank = 0; rank < group.size(); ++rank) {
          if (batch < batches(rank)) {
            (mean_loss(reference->forward(rows_of(Rank{rank}) + batch)) / active).backward();
          }
        }
        same.step();
        same.zero_grad();
      }
      for (const auto& item : reference->named_parameters()) {
        EXPECT_TRUE(torch::allclose(net->named_parameters()[item.key()], item.value(), 1e-9, 1e-12)) << item.key();
      }
    });
  }
}

TEST_P(DataParallelTest, WhatARankAccumulatedBeforeItJoinsCounts) {
  for (const auto reduction : {Reduction::usual, Reduction::reproducible}) {
    on_ranks(GetParam(), [reduction](Group& group) {
      Net net(1);
      Net reference(1);
      DataParallel model(net, group,
                         small_buckets({.mean = Mean::per_pass, .uneven_data = true, .reduction = reduction}));
      const int last = group.size() - 1;
      int steps = 0;
      const auto check = [&] {
        ++steps;
        expect_same_gradients(*net, *reference);
        net->zero_grad();
      };
      const double passes = group.size() * (group.size() + 1) / 2.0;
      for (int rank = 0; rank < group.size(); ++rank) {
        for (int pass = 0; pass <= rank; ++pass) {
          (mean_loss(reference->forward(rows_of(Rank{rank}) + pass)) / passes).backward();
        }
      }
      {
        auto pause = model.no_sync();
        for (int pass = 0; pass < std::min(to_int(group.rank()) + 1, last); ++pass) {
          mean_loss(model->forward(rows_of(group.rank()) + pass)).backward();
        }
      }
      if (to_int(group.rank()) == last) {
        mean_loss(model->forward(rows_of(group.rank()) + last)).backward();
        check();
      }
      model.join(check);
      EXPECT_EQ(steps, 1);
    });
  }
}

TEST_P(DataParallelTest, OnePassEachCountsAlsoWhereItWasPaused) {
  for (const auto& [reduction, paused_ranks] : {std::pair{Reduction::usual, 1},
                                                {Reduction::usual, 9},
                                                {Reduction::reproducible, 1},
                                                {Reduction::reproducible, 9}}) {
    on_ranks(GetParam(), [reduction = reduction, paused_ranks = paused_ranks](Group& group) {
      Net net(1);
      Net reference(1);
      DataParallel model(net, group,
                         small_buckets({.mean = Mean::per_pass, .uneven_data = true, .reduction = reduction}));
      for (int rank = 0; rank < group.size(); ++rank) {
        (mean_loss(reference->forward(rows_of(Rank{rank}))) / group.size()).backward();
      }
      int steps = 0;
      const auto check = [&] {
        ++steps;
        expect_same_gradients(*net, *reference);
      };
      const bool pauses = to_int(group.rank()) < paused_ranks;
      {
        std::optional<DataParallelBase::Pause> pause;
        if (pauses) {
          pause.emplace(model.no_sync());
        }
        mean_loss(model->forward(rows_of(group.rank()))).backward();
      }
      if (!pauses) {
        check();
        net->zero_grad();
      }
      model.join(check);
      EXPECT_EQ(steps, 1);
    });
  }
}

TEST_P(DataParallelTest, SparseGradientsBecomeDense) {
  on_ranks(GetParam(), [](Group& group) {
    const auto make = [] {
      torch::nn::Embedding table(torch::nn::EmbeddingOptions(9, 4).sparse(true));
      set_parameters(*table, 1);
      return table;
    };
    auto table = make();
    auto reference = make();
    DataParallel model(table, group, small_buckets());
    for (int step = 0; step < 4; ++step) {
      table->zero_grad();
      reference->zero_grad();
      const auto words = [&](int rank) { return torch::tensor({rank, rank + step, 8}); };
      model->forward(words(to_int(group.rank()))).square().sum().backward();
      for (int rank = 0; rank < group.size(); ++rank) {
        (reference->forward(words(rank)).square().sum() / group.size()).backward();
      }
      const auto expected = reference->weight.grad().to_dense();
      EXPECT_TRUE(torch::allclose(table->weight.grad(), expected, 1e-12, 1e-12)) << "in step " << step;
    }
  });
}

struct MixedImpl : torch::nn::Module {
  MixedImpl() {
    wave = register_parameter("wave", torch::complex(drawn({5}, 1), drawn({5}, 2)));
    half = register_parameter("half", drawn({5}, 3, torch::kFloat));
    frozen = register_parameter("frozen", drawn({5}, 4), false);
    picture = register_parameter("picture", drawn({2, 3, 4, 5}, 5).contiguous(at::MemoryFormat::ChannelsLast));
    tied = register_parameter("tied", picture);
  }
  torch::Tensor forward(const torch::Tensor& x) {
    return (torch::real(wave * torch::conj(wave)) * x).sum() + (half.to(torch::kDouble) * frozen * x).sum() +
           (picture * x).sum() * tied.square().sum();
  }
  torch::Tensor wave, half, frozen, picture, tied;
};
TORCH_MODULE(Mixed);

TEST_P(DataParallelTest, AllKindsOfParameters) {
  on_ranks(GetParam(), [](Group& group) {
    Mixed net;
    Mixed reference;
    DataParallel model(net, group, small_buckets());
    for (int step = 0; step < 3; ++step) {
      net->zero_grad();
      reference->zero_grad();
      model->forward(rows_of(group.rank())[0]).backward();
      for (int rank = 0; rank < group.size(); ++rank) {
        (reference->forward(rows_of(Rank{rank})[0]) / group.size()).backward();
      }
      EXPECT_FALSE(net->frozen.grad().defined());
      EXPECT_EQ(net->picture.grad().strides(), net->picture.strides());
      EXPECT_TRUE(torch::allclose(net->half.grad(), reference->half.grad(), 1e-6)) << step;
      EXPECT_TRUE(torch::allclose(net->wave.grad(), reference->wave.grad(), 1e-12)) << step;
      EXPECT_TRUE(torch::allclose(net->picture.grad(), reference->picture.grad(), 1e-12)) << step;
    }
  });
}

}  // namespace
}  // namespace tutti
