#include "tutti/gradient/step_ahead.h"

#include <algorithm>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tutti/gradient/clip.h"
#include "tutti/gradient/test_cable.h"
#include "tutti/gradient/test_ranks.h"

namespace tutti {
namespace {

using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

TEST(StepAhead, WeightsAreThoseOfUsualSteps) {
  on_ranks(2, [](Group& group) {
    Pair pair(group);
    torch::optim::AdamW first(pair.ahead_net->parameters(), 0.01);
    torch::optim::AdamW second(pair.usual_net->parameters(), 0.01);
    StepAhead ahead(pair.ahead_model, first);
    std::size_t early = 0;
    auto& first_options = first.param_groups()[0].options();  // as programs do: they must stay where they are
    auto& second_options = second.param_groups()[0].options();
    for (int step = 0; step < 12; ++step) {
      const auto rate = 0.01 / (step + 1);  // a step that is taken later has the rate of its own time
      first_options.set_lr(rate);
      second_options.set_lr(rate);
      mean_loss(pair.usual_model->forward(batch(group.rank(), step))).backward();
      second.step();
      second.zero_grad();
      mean_loss(pair.ahead_model->forward(batch(group.rank(), step))).backward();
      early += pair.cable->back.size() < pair.cable->sent ? 1 : 0;
      ahead.step();
    }
    EXPECT_GE(early, 6U) << "backward returned before all buckets were back, as soon as the cable was known";
    ahead.finish();
    pair.expect_same();
    EXPECT_EQ(pair.cable->back.size(), pair.cable->sent);
  });
}

TEST(StepAhead, WhatTheNextForwardNeedsFirstComesBackFirst) {
  on_ranks(2, [](Group& group) {
    Pair pair(group);
    torch::optim::SGD optimizer(pair.ahead_net->parameters(), 0.1);
    StepAhead ahead(pair.ahead_model, optimizer);
    for (int step = 0; step < 5; ++step) {
      mean_loss(pair.ahead_model->forward(batch(group.rank(), step))).backward();
      ahead.step();
    }
    ahead.finish();
    // Some had the cable while backward ran; then come those of the first layers.
    ASSERT_GE(pair.cable->back.size(), 6U);
    const std::vector<std::size_t> back(pair.cable->back.end() - 6, pair.cable->back.end());
    std::vector<std::size_t> wanted{0, 1, 2, 3, 4, 5};
    const auto held = std::find(back.begin(), back.end(), 5U) - back.begin();
    std::reverse(wanted.begin() + held, wanted.end());
    EXPECT_THAT(back, ElementsAreArray(wanted));
    EXPECT_LT(held, 5) << "nobody waited for the cable";
  });
}

TEST(StepAhead, GradientsAreWaitedForByWhoUsesThem) {
  on_ranks(2, [](Group& group) {
    Pair pair(group);
    torch::optim::SGD optimizer(pair.ahead_net->parameters(), 0.1);
    torch::optim::SGD same(pair.usual_net->parameters(), 0.1);
    const StepAhead ahead(pair.ahead_model, optimizer);
    for (int step = 0; step < 6; ++step) {
      optimizer.zero_grad();
      same.zero_grad();
      pair.backward(group.rank(), step);
      if (step == 5) {
        EXPECT_LT(pair.cable->back.size(), pair.cable->sent);
      }
      EXPECT_EQ(clip_gradients(*pair.ahead_net, 0.1), clip_gradients(*pair.usual_net, 0.1));
      optimizer.step();  // the usual one works as well
      same.step();
      pair.expect_same();
    }
  });
}

TEST(StepAhead, ParametersAreWaitedForOnEveryThread) {
  on_ranks(2, [](Group& group) {
    Pair pair(group);
    torch::optim::SGD optimizer(pair.ahead_net->parameters(), 0.1);
    torch::optim::SGD same(pair.usual_net->parameters(), 0.1);
    StepAhead ahead(pair.ahead_model, optimizer);
    for (int step = 0; step < 6; ++step) {
      mean_loss(pair.ahead_model->forward(batch(group.rank(), step))).backward();
      ahead.step();
      same.zero_grad();
      mean_loss(pair.usual_model->forward(batch(group.rank(), step))).backward();
      same.step();
      const auto view = pair.ahead_net->all[0]->weight.detach().view({-1});  // another tensor in the same memory
      torch::Tensor seen;
      std::thread([&] { seen = view + 0; }).join();
      EXPECT_TRUE(torch::equal(seen, pair.usual_net->all[0]->weight.detach().view({-1}))) << step;
    }
  });
}

TEST(StepAhead, SamplesAreCountedAndPassesPaused) {
  on_ranks(2, [](Group& group) {
    Pair pair(group, {.mean = Mean::per_sample});
    torch::optim::SGD first(pair.ahead_net->parameters(), 0.1);
    torch::optim::SGD second(pair.usual_net->parameters(), 0.1);
    StepAhead ahead(pair.ahead_model, first);
    const auto pass = [&](auto& model, int step) {
      const auto x = batch(group.rank(), step).slice(0, 0, 1 + to_int(group.rank()));
      model.weigh(mean_loss(model->forward(x)), static_cast<double>(x.size(0))).backward();
    };
    for (int step = 0; step < 6; ++step) {
      second.zero_grad();
      {
        const auto pause = pair.usual_model.no_sync();
        pass(pair.usual_model, step);
      }
      pass(pair.usual_model, step + 1);
      second.step();
      {
        const auto pause = pair.ahead_model.no_sync();
        pass(pair.ahead_model, step);
      }
      pass(pair.ahead_model, step + 1);
      ahead.step();
    }
    ahead.finish();
    pair.expect_same();
  });
}

TEST(StepAhead, WhatIsThrownAwayIsNotTaken) {
  on_ranks(2, [](Group& group) {
    Pair pair(group);
    torch::optim::SGD first(pair.ahead_net->parameters(), 0.1);
    torch::optim::SGD second(pair.usual_net->parameters(), 0.1);
    StepAhead ahead(pair.ahead_model, first);
    for (int step = 0; step < 8; ++step) {
      pair.backward(group.rank(), step);
      if (step % 2 == 0) {
        ahead.step();
        second.step();
      }
      first.zero_grad();  // a step that is skipped
      second.zero_grad();
    }
    ahead.finish();
    pair.expect_same();
  });
}

TEST(StepAhead, WhatAProgramDoesToGradientsCounts) {
  on_ranks(2, [](Group& group) {
    Pair pair(group);
    torch::optim::SGD first(pair.ahead_net->parameters(), 0.1);
    torch::optim::SGD second(pair.usual_net->parameters(), 0.1);
    StepAhead ahead(pair.ahead_model, first);
    for (int step = 0; step < 8; ++step) {
      pair.backward(group.rank(), step);
      for (auto* const net : {&pair.ahead_net, &pair.usual_net}) {
        auto& layers = (*net)->all;
        layers[0]->weight.mutable_grad().reset();  // frozen
        layers[1]->bias.mutable_grad() = torch::ones({5}, torch::kDouble);
        layers[2]->weight.mutable_grad() = layers[2]->weight.grad() * 2;
      }
      ahead.step();
      second.step();
      second.zero_grad();
    }
    ahead.finish();
    pair.expect_same();
  });
}

TEST(StepAhead, ReproducibleSumsForgetNothing) {
  on_ranks(2, [](Group& group) {
    Deep ahead_net(6);
    Deep usual_net(6);
    const DataParallelOptions options{
        .bucket_bytes = 200, .first_bucket_bytes = 200, .mean = Mean::per_pass, .reduction = Reduction::reproducible};
    DataParallel ahead_model(ahead_net, group, options);
    DataParallel usual_model(usual_net, group, options);
    torch::optim::SGD first(ahead_net->parameters(), 0.1);
    torch::optim::SGD second(usual_net->parameters(), 0.1);
    StepAhead ahead(ahead_model, first);
    const auto passes = [&](auto& model, int step) {
      {
        const auto pause = model.no_sync();
        mean_loss(model->forward(batch(group.rank(), step))).backward();
      }
      mean_loss(model->forward(batch(group.rank(), step + 1))).backward();
    };
    for (int step = 0; step < 5; ++step) {
      passes(ahead_model, step);
      ahead.step();
      passes(usual_model, step);
      second.step();
      second.zero_grad();
    }
    for (const auto& item : usual_net->named_parameters()) {
      EXPECT_TRUE(torch::equal(ahead_net->named_parameters()[item.key()], item.value())) << item.key();
    }
  });
}

TEST(StepAhead, ACutCableIsToldByTheNextBackward) {
  on_ranks(2, [](Group& group) {
    Pair pair(group);
    torch::optim::SGD optimizer(pair.ahead_net->parameters(), 0.1);
    StepAhead ahead(pair.ahead_model, optimizer);
    for (int step = 0; step < 4; ++step) {
      mean_loss(pair.ahead_model->forward(batch(group.rank(), step))).backward();
      ahead.step();
    }
    pair.cable->broken = true;
    const auto loss = mean_loss(pair.ahead_model->forward(batch(group.rank(), 9)));
    try {
      loss.backward();
      ADD_FAILURE() << "backward knew of nothing";
    } catch (const std::exception& error) {
      EXPECT_THAT(error.what(), HasSubstr("the cable is cut"));
    }
    EXPECT_THROW(ahead.step(), std::exception);
    EXPECT_THROW(ahead.finish(), std::exception);
  });
}

TEST(StepAhead, RefusesWhatItCannotStep) {
  on_ranks(1, [](Group& group) {
    Pair pair(group);
    torch::optim::SGD part(pair.ahead_net->all[0]->parameters(), 0.1);
    try {
      const StepAhead ahead(pair.ahead_model, part);
      ADD_FAILURE() << "took an optimizer that lacks parameters";
    } catch (const Exception& error) {
      EXPECT_THAT(error.what(), HasSubstr("does not have parameter 'layer1.weight'"));
    }
    torch::optim::LBFGS together(pair.ahead_net->parameters());
    EXPECT_THROW(StepAhead(pair.ahead_model, together), Exception);
  });
}

}  // namespace
}  // namespace tutti
