#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

namespace tutti {

/// Reproducible sums under way on one rank (docs/reproducible.md): addends as they are, up to eight, contiguous and as
/// long as the result, of the same floats; and accumulators as bytes, where there are some.
struct Summands {
  std::vector<at::Tensor> addends = {};
  at::Tensor sums = {};
};

}  // namespace tutti
