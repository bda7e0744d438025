#pragma once

#include <string>

#include "train/console.h"
#include "tutti/comm/world.h"

namespace tutti::train {

inline constexpr int kInterrupted = 130;  ///< as a shell says it of a program that Ctrl-C ended

/// A training as the ranks of a job do it, from a folder that holds its settled configuration, train.json.
struct JobOptions {
  std::string folder;
  bool resume = false;  ///< go on from what the folder holds
  Display display = Display::plain;
};

/// Trains, and leaves weights, state and report in the folder. All ranks call it; the first one writes and speaks.
/// Returns what the process exits with: 0, 1 when something could not be written, kInterrupted. Throws for the rest.
int train(const World& world, const JobOptions& options);

}  // namespace tutti::train
