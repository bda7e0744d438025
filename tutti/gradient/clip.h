#pragma once

#include <limits>
#include <vector>

#include <torch/nn/module.h>

#include "tutti/comm/mesh.h"
#include "tutti/gradient/sharded_over.h"

namespace tutti {

struct ClipOptions {
  /// Which norm; infinity: the largest magnitude.
  double norm = 2;
  /// Throw, on all ranks, when the norm is infinite or no number, and leave gradients as they are.
  bool error_if_nonfinite = false;
  /// Parameters of which ranks along an axis have different parts: the parts' norms are added up along it.
  std::vector<ShardedOver> sharded = {};
};

/// Scales a model's gradients so that their norm, all of them seen as one vector, is at most `largest`; gives what it
/// was before. To be called after gradients are synchronized, by all ranks; each comes to the same result, to the bit.
/// Complex gradients count by their magnitudes.
double clip_gradients(const torch::nn::Module& module, double largest, const ClipOptions& options = {});

/// On a mesh where some parameters are divided over axes, as the options tell: a part that is here counts here, and one
/// that all ranks have counts once.
double clip_gradients(const torch::nn::Module& module, const Mesh& mesh, double largest,
                      const ClipOptions& options = {});

}  // namespace tutti
