#include "train/trainer.h"

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <mutex>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "train/checkpoint.h"
#include "train/exchange.h"
#include "train/memory_need.h"
#include "train/position_file.h"
#include "train/step_news.h"
#include "train/test_folder.h"
#include "tutti/comm/world.h"

namespace tutti::train {
namespace {

Corpus some_corpus() {
  std::string text;
  for (int i = 0; i < 3000; ++i) {
    text += "the " + std::to_string(i * i) + " of it; ";
  }
  return Corpus::of({text});
}

Config small(int ranks, Config config = {}) {
  config.layers = 1;
  config.heads = 2;
  config.width = 24;
  config.context = 16;
  config.batch_tokens = 16 * 24;
  config.steps = 30;
  config.learning_rate = config.learning_rate.value_or(5e-3);
  return settle(config, ranks).value();
}

struct Outcome {
  std::vector<double> losses;
  std::vector<double> norms;
  double evaluation = 0;
  std::vector<at::Tensor> weights;
};

/// What a training of so many ranks comes to, as one of them sees it.
Outcome trained(int ranks, const Config& wanted) {
  const auto corpus = some_corpus();
  Outcome outcome;
  run_ranks(ranks, [&](Group& group) {
    torch::set_num_threads(1);
    const auto config = small(ranks, wanted);
    Trainer trainer(config, corpus, group);
    Outcome own;
    for (std::int64_t step = 0; step < config.steps; ++step) {
      const auto done = trainer.step(step);
      std::vector<StepNews> news;
      for (const auto& row : gather(group, StepNews{.losses = done.losses}.row(trainer.most_passes()))) {
        news.push_back(StepNews::from_row(row));
      }
      own.losses.push_back(mean_loss(news));
      own.norms.push_back(done.gradient_norm);
    }
    own.evaluation = trainer.evaluate();
    for (const auto& [name, weight] : trainer.weights()) {
      own.weights.push_back(weight.detach().clone());
    }
    if (group.rank() == to_rank(static_cast<std::size_t>(ranks) - 1)) {
      outcome = std::move(own);
    }
  });
  return outcome;
}

TEST(Trainer, LearnsTheSameOnAnyNumberOfRanks) {
  const auto alone = trained(1, {});
  EXPECT_LT(alone.losses.back(), alone.losses.front() - 1);
  for (const int ranks : {2, 3, 4}) {
    const auto together = trained(ranks, {});
    for (std::size_t i = 0; i < alone.losses.size(); ++i) {
      ASSERT_NEAR(together.losses[i], alone.losses[i], 1e-3) << ranks << " ranks, step " << i;
    }
    EXPECT_NEAR(together.evaluation, alone.evaluation, 1e-3);
  }
}

TEST(Trainer, AccumulationIsALargerBatchInPieces) {
  const auto at_once = trained(2, {});
  const auto in_pieces = trained(2, {.accumulation = 3});
  for (std::size_t i = 0; i < at_once.losses.size(); ++i) {
    ASSERT_NEAR(in_pieces.losses[i], at_once.losses[i], 1e-3);
  }
}

TEST(Trainer, ReproducibleIsTheSameBits) {
  const auto alone = trained(1, {.reproducible = true});
  for (const int ranks : {2, 3, 5}) {
    const auto together = trained(ranks, {.reproducible = true});
    EXPECT_EQ(together.losses, alone.losses) << ranks;
    EXPECT_EQ(together.norms, alone.norms) << ranks;
    EXPECT_EQ(together.evaluation, alone.evaluation) << ranks;
    for (std::size_t i = 0; i < alone.weights.size(); ++i) {
      EXPECT_TRUE(together.weights[i].equal(alone.weights[i])) << ranks;
    }
  }
}

TEST(Trainer, LearnsInBfloat16AndWithLambAndHooks) {
  for (const auto& config :
       {Config{.precision = Precision::bfloat16}, Config{.optimizer = Optimizer::lamb, .learning_rate = 0.02},
        Config{.hook = Hook::fp16}, Config{.clip = 0, .hook = Hook::bf16}}) {
    const auto outcome = trained(2, config);
    EXPECT_LT(outcome.losses.back(), outcome.losses.front() - 0.5);
    EXPECT_EQ(outcome.weights[0].scalar_type(), at::kFloat);
  }
}

TEST(Trainer, LeavesOutAStepWhoseGradientIsNoNumber) {
  const auto corpus = some_corpus();
  const auto config = small(1);
  run_ranks(1, [&](Group& group) {
    Trainer trainer(config, corpus, group);
    const auto weights = trainer.weights();
    {
      const torch::NoGradGuard no_grad;
      weights[0].second[0][0] = std::nan("");  // a byte that does not occur, but every logit's
    }
    const auto before = weights[1].second.clone();
    const auto done = trainer.step(0);
    EXPECT_FALSE(std::isfinite(done.gradient_norm));
    EXPECT_TRUE(weights[1].second.equal(before));
  });
}

/// Bytes of this process: "VmRSS" now, "VmHWM" at most so far.
double memory_of_process(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(name + ":")) {
      return 1024 * std::stod(line.substr(name.size() + 1));
    }
  }
  return 0;
}

/// Whether a training takes the memory that was counted, and not ten times as much: then the count is of no use.
bool takes_what_was_counted(const Config& config) {
  const auto corpus = some_corpus();
  const auto before = memory_of_process("VmRSS");
  run_ranks(1, [&](Group& group) {
    torch::set_num_threads(1);
    Trainer trainer(config, corpus, group);
    for (std::int64_t step = 0; step < 2; ++step) {
      trainer.step(step);
    }
  });
  const auto taken = memory_of_process("VmHWM") - before;
  const auto counted = least_memory(config, 1).bytes(2);
  std::cerr << "counted " << counted << ", taken " << taken << "\n";
  return taken >= counted && taken <= 10 * counted;
}

/// What is refused beforehand must never have fitted. Each in a process of its own, which has not freed any memory yet.
TEST(TrainerDeathTest, TakesTheMemoryThatWasCounted) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const Config activations{.layers = 3, .heads = 4, .width = 96, .context = 128, .batch_tokens = 128 * 100};
  const Config weights{.layers = 2, .heads = 4, .width = 512, .context = 16, .batch_tokens = 16 * 3};
  auto half = activations;
  half.precision = Precision::bfloat16;
  for (const auto& config : {activations, weights, half}) {
    EXPECT_EXIT(std::exit(takes_what_was_counted(settle(config, 1).value()) ? 0 : 1), testing::ExitedWithCode(0), "");
  }
}

TEST(Trainer, GoesOnFromWhatWasSaved) {
  for (const auto precision : {Precision::float32, Precision::bfloat16}) {
    const TestFolder folder;
    const auto corpus = some_corpus();
    const auto config = small(1, {.precision = precision});
    run_ranks(1, [&](Group& group) {
      Trainer whole(config, corpus, group);
      for (std::int64_t step = 0; step < 10; ++step) {
        whole.step(step);
      }
      const auto saved = save_checkpoint(folder.path(), {.weights = whole.weights(),
                                                         .size = whole.model()->size(),
                                                         .config = config,
                                                         .optimizer = whole.optimizer(),
                                                         .position = whole.position(10)});
      ASSERT_TRUE(saved.ok()) << saved.error().message;
      Trainer later(config, corpus, group, read_position(folder.path()).value());
      ASSERT_TRUE(load_weights(folder.path(), later.weights()).ok());
      later.weights_changed();
      const auto loaded = load_optimizer(folder.path(), later.optimizer());
      ASSERT_TRUE(loaded.ok()) << loaded.error().message;
      for (std::int64_t step = 10; step < 15; ++step) {
        EXPECT_EQ(later.step(step).losses, whole.step(step).losses);
      }
      EXPECT_FALSE(load_optimizer(folder / "nowhere", later.optimizer()).ok());
    });
  }
}

}  // namespace
}  // namespace tutti::train
