// StepAhead together with what else programs do: joining, hooks, inference, gradients set by hand, a rank that fails.

#include <algorithm>

#include <ATen/autocast_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tutti/gradient/noise_scale.h"
#include "tutti/gradient/step_ahead.h"
#include "tutti/gradient/test_cable.h"
#include "tutti/gradient/test_ranks.h"

namespace tutti {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(StepAhead, GoesOnWhenRankZeroHasJoined) {
  on_ranks(2, [](Group& group) {
    Pair pair(group, {.mean = Mean::per_pass, .uneven_data = true});
    torch::optim::SGD first(pair.ahead_net->parameters(), 0.1);
    torch::optim::SGD second(pair.usual_net->parameters(), 0.1);
    StepAhead ahead(pair.ahead_model, first);
    const int batches = group.rank() == Rank{0} ? 4 : 9;
    std::size_t early = 0;
    for (int step = 0; step < batches; ++step) {
      mean_loss(pair.ahead_model->forward(batch(group.rank(), step))).backward();
      early += step >= 5 && pair.cable->back.size() < pair.cable->sent ? 1 : 0;
      ahead.step();
    }
    pair.ahead_model.join([&] { ahead.step(); });
    for (int step = 0; step < batches; ++step) {
      mean_loss(pair.usual_model->forward(batch(group.rank(), step))).backward();
      second.step();
      second.zero_grad();
    }
    pair.usual_model.join([&] {
      second.step();
      second.zero_grad();
    });
    ahead.finish();
    pair.expect_same();
    if (group.rank() == Rank{1}) {
      EXPECT_GE(early, 3U) << "held no bucket any more";
    }
  });
}

/// Does not say how long its work took.
class SilentHook final : public Hook {
 public:
  Work reduce(const FullBucket& bucket, const Group& group) override {
    return Work(c10::make_intrusive<Silent>(all_reduce(bucket.gradients, bucket.reduce, group)));
  }

 private:
  struct Silent final : c10d::Work {
    explicit Silent(tutti::Work other) : inner(std::move(other)) {}
    bool wait(std::chrono::milliseconds) override {
      inner.wait();
      return true;
    }
    tutti::Work inner;
  };
};

TEST(StepAhead, HooksMayDoAnything) {
  for (const bool noise : {false, true}) {
    on_ranks(2, [noise](Group& group) {
      Deep ahead_net(6);
      Deep usual_net(6);
      const auto hook = noise ? std::shared_ptr<Hook>(std::make_shared<NoiseScale>(3)) : std::make_shared<SilentHook>();
      DataParallel ahead_model(ahead_net, group, Pair::with({}, hook));
      DataParallel usual_model(usual_net, group, Pair::with({}, nullptr));
      torch::optim::SGD first(ahead_net->parameters(), 0.1);
      torch::optim::SGD second(usual_net->parameters(), 0.1);
      StepAhead ahead(ahead_model, first);
      for (int step = 0; step < 6; ++step) {
        mean_loss(ahead_model->forward(batch(group.rank(), step))).backward();
        ahead.step();
        if (!noise) {
          EXPECT_EQ(ahead_model.report()->step, static_cast<std::uint64_t>(step) + 1) << "backward did not wait";
        }
        mean_loss(usual_model->forward(batch(group.rank(), step))).backward();
        second.step();
        second.zero_grad();
      }
      for (const auto& item : usual_net->named_parameters()) {
        EXPECT_TRUE(torch::allclose(ahead_net->named_parameters()[item.key()], item.value(), 1e-12)) << item.key();
      }
    });
  }
}

TEST(StepAhead, OneOfTwoMayEnd) {
  on_ranks(2, [](Group& group) {
    Pair pair(group);
    torch::optim::SGD optimizer(pair.ahead_net->parameters(), 0.1);
    StepAhead ahead(pair.ahead_model, optimizer);
    { const StepAhead shortly(pair.ahead_model, optimizer); }
    std::size_t early = 0;
    for (int step = 0; step < 6; ++step) {
      mean_loss(pair.ahead_model->forward(batch(group.rank(), step))).backward();
      early += pair.cable->back.size() < pair.cable->sent ? 1 : 0;
      ahead.step();
    }
    EXPECT_GE(early, 2U);
  });
}

/// Knows in which modes it was stepped.
class Observing final : public torch::optim::SGD {
 public:
  using SGD::SGD;
  torch::Tensor step(LossClosure closure) override {
    inference = inference || c10::InferenceMode::is_enabled();
    autocast = autocast || at::autocast::is_autocast_enabled(at::kCPU);
    return SGD::step(std::move(closure));
  }

  bool inference = false;
  bool autocast = false;
};

TEST(StepAhead, StepsInTheModesOfWhoAsked) {
  on_ranks(2, [](Group& group) {
    Pair pair(group);
    Observing optimizer(pair.ahead_net->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
    torch::optim::SGD same(pair.usual_net->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
    StepAhead ahead(pair.ahead_model, optimizer);
    for (int step = 0; step < 6; ++step) {
      mean_loss(pair.ahead_model->forward(batch(group.rank(), step))).backward();
      if (step == 5) {
        EXPECT_LT(pair.cable->back.size(), pair.cable->sent);
      }
      ahead.step();
      mean_loss(pair.usual_model->forward(batch(group.rank(), step))).backward();
      same.step();
      same.zero_grad();
      const c10::InferenceMode inference(step % 2 == 0);
      at::autocast::set_autocast_enabled(at::kCPU, true);
      const auto seen = pair.ahead_net->all[0]->weight + 0;
      at::autocast::set_autocast_enabled(at::kCPU, false);
      EXPECT_TRUE(torch::equal(seen, pair.usual_net->all[0]->weight)) << step;
    }
    EXPECT_FALSE(optimizer.inference);
    EXPECT_FALSE(optimizer.autocast);
    ahead.finish();
    pair.expect_same();
  });
}

TEST(StepAhead, GradientsSetByHandCountWhenBucketsAreDividedAnew) {
  on_ranks(2, [](Group& group) {
    Pair pair(group);
    torch::optim::SGD first(pair.ahead_net->parameters(), 0.1);
    torch::optim::SGD second(pair.usual_net->parameters(), 0.1);
    StepAhead ahead(pair.ahead_model, first);
    // The first pass teaches the order of layers, which is not that of their names: buckets change behind it.
    const auto crosswise = [](auto& net, torch::Tensor x) {
      for (const auto layer : {5, 2, 0, 4, 1}) {
        x = torch::tanh(net->all[static_cast<std::size_t>(layer)](x));
      }
      return x;  // layer 3 has no part in it
    };
    for (int step = 0; step < 4; ++step) {
      for (auto* const net : {&pair.ahead_net, &pair.usual_net}) {
        (*net)->all[3]->weight.mutable_grad() = torch::full({5, 5}, 1.0 + step + to_int(group.rank()), torch::kDouble);
      }
      mean_loss(crosswise(pair.ahead_net, batch(group.rank(), step))).backward();
      mean_loss(crosswise(pair.usual_net, batch(group.rank(), step))).backward();
      EXPECT_TRUE(torch::equal(pair.usual_net->all[3]->weight.grad(), torch::full({5, 5}, 1.5 + step, torch::kDouble)));
      ahead.step();
      second.step();
      second.zero_grad();
    }
    ahead.finish();
    pair.expect_same();
  });
}

TEST(StepAhead, AFailureIsHeardOfByTheOthersAtOnce) {
  on_ranks(2, [](Group& group) {
    Pair pair(group);
    torch::optim::SGD optimizer(pair.ahead_net->parameters(), 0.1);
    StepAhead ahead(pair.ahead_model, optimizer);
    int step = 0;
    const auto pass = [&] {
      mean_loss(pair.ahead_model->forward(batch(group.rank(), step++))).backward();
      ahead.step();
    };
    for (int i = 0; i < 4; ++i) {
      pass();
    }
    pair.cable->broken = group.rank() == Rank{0};
    std::string failure;
    try {
      for (int i = 0; i < 4; ++i) {
        pass();
      }
    } catch (const std::exception& error) {
      failure = error.what();
    }
    if (group.rank() == Rank{0}) {
      EXPECT_THAT(failure, HasSubstr("the cable is cut"));
      EXPECT_THROW(ahead.finish(), std::exception);
    } else {
      EXPECT_THAT(failure, HasSubstr("abort"));
      EXPECT_THAT(failure, Not(HasSubstr("deadline")));
    }
  });
}

}  // namespace
}  // namespace tutti
