#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "train/batches.h"
#include "train/config.h"
#include "train/corpus.h"
#include "train/gpt.h"
#include "train/step_clock.h"
#include "train/weights.h"
#include "tutti/comm/group.h"
#include "tutti/gradient/data_parallel.h"
#include "tutti/optim/learning_rate.h"
#include "tutti/optim/master_weights.h"

namespace tutti::train {

/// What came of a step, on this rank.
struct StepDone {
  std::vector<double> losses;  ///< of this rank's passes
  double gradient_norm = 0;    ///< of the average over all ranks, before clipping: the same on all
  double learning_rate = 0;
  StepClock clock;
};

/// A GPT in training, on one of the ranks of a group: data, model, optimizer, and how they make a step. Made by all
/// ranks, with the same settled configuration and the same data. Errors are exceptions. One thread.
///
/// A step is made of passes, which are dealt out to the ranks in turn. Which bytes a pass reads depends on its number
/// and the number of all passes alone.
class Trainer {
 public:
  /// `corpus` must outlive it.
  Trainer(const Config& config, const Corpus& corpus, Group group, const Position& from = {});

  /// Steps are numbered from 0. One whose gradient is no number is left out: weights stay as they were.
  StepDone step(std::int64_t number);

  /// The mean loss over the part of the data that is not trained on, or a bounded part of that; the same bits on all
  /// ranks, and for any number of them.
  double evaluate();

  /// Parameters in float32, by name.
  NamedTensors weights() const;
  /// After these were written to.
  void weights_changed();

  Gpt& model() { return net_; }
  torch::optim::Optimizer& optimizer() { return *optimizer_; }
  const Group& group() const { return group_; }
  std::optional<StepReport> report() const { return parallel_.report(); }
  Position position(std::int64_t step) const { return batches_.position(step); }
  /// The most passes that a rank makes in a step.
  std::size_t most_passes() const;

 private:
  struct Texts {
    torch::Tensor text;
    torch::Tensor next;  ///< the same, one byte later
  };
  Texts texts(const std::vector<std::int64_t>& begins) const;
  double loss_of(const std::vector<std::int64_t>& begins);

  const Config config_;
  const Corpus& corpus_;
  const Group group_;
  const Split split_;
  const Batches batches_;
  const int passes_;
  Gpt net_;
  DataParallel<GptImpl> parallel_;
  MasterWeights masters_;
  const std::unique_ptr<torch::optim::Optimizer> optimizer_;
  LearningRateSchedule schedule_;
};

}  // namespace tutti::train
