#pragma once

#include <string>

#include <torch/optim/optimizer.h>

#include "train/batches.h"
#include "train/config.h"
#include "train/presets.h"
#include "train/weights.h"
#include "tutti/base/error.h"

namespace tutti::train {

/// What a training goes on from: model.safetensors and config.json, which others read too, optimizer.pt, train.json,
/// position.json.
struct Checkpoint {
  const NamedTensors& weights;
  const ModelSize& size;
  const Config& config;
  torch::optim::Optimizer& optimizer;
  Position position;
};

/// Writes all of them into the folder, by one rank. First beside the old ones, which are replaced when all new ones are
/// on the disk: what goes wrong before, a full disk for example, leaves the old; a crash while they are replaced is
/// mended by finish_saving. Blocks.
Status save_checkpoint(const std::string& folder, const Checkpoint& checkpoint);

/// Puts the folder's optimizer state into one that has the same parameters. Blocks.
Status load_optimizer(const std::string& folder, torch::optim::Optimizer& optimizer);

}  // namespace tutti::train
