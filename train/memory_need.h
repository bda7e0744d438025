#pragma once

#include <optional>
#include <string>

#include "train/config.h"

namespace tutti::train {

/// Bytes that one rank of a training cannot do without. Numbers with a fraction, since settings that are allowed one
/// by one multiply to more than integers hold.
struct MemoryNeed {
  double weights = 0;      ///< with masters in float32, where the model has others
  double gradients = 0;    ///< of all weights
  double optimizer = 0;    ///< what it keeps from step to step
  double activations = 0;  ///< that a pass keeps from forward to backward

  /// The most of them that are there at once.
  double bytes(std::int64_t steps) const;
};

/// A lower bound, from what each operation of the model has to keep: what LibTorch itself takes, copies on the way and
/// buffers for communication come on top. `config` is settled. Pure.
MemoryNeed least_memory(const Config& config, int ranks);

/// Why these ranks cannot train in so many bytes, with what would need fewer; nothing where they might. Pure.
std::optional<std::string> why_it_cannot_fit(const Config& config, int ranks, double available);

}  // namespace tutti::train
