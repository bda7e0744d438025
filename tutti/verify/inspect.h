#pragma once
// Whether a parameter's gradients are right, from what all ranks have of it.

#include <vector>

#include <ATen/core/Tensor.h>

#include "tutti/verify/diagnose.h"

namespace tutti::verifying {

/// What gradients may differ by.
struct Tolerance {
  double roundoff = 0;    ///< of the type that gradients have, or are sent as
  double smallest = 0;    ///< that an element may be wrong by, whatever it is
  double evaluation = 0;  ///< of the same gradient computed in another order, relative to the largest element
  double backdrop = 0;    ///< what is added to that: noise of larger gradients
  bool exact = true;      ///< ranks compute the very numbers that one process computes for their rows
};

/// A parameter's gradients in one step, by rank: rows of doubles [microbatches + 3, elements], the parts, the sum of
/// them with the weights of the step before, that of the whole batch, and the observed one.
struct Gradients {
  std::vector<at::Tensor> by_rank;
  std::vector<bool> expected;  ///< by rank, whether one process has a gradient
  std::vector<bool> observed;
};

/// What there is to say of ranks that belong together.
struct Inspection {
  std::vector<Rank> random = {};      ///< compute something else from the same rows and weights
  std::vector<Rank> missing = {};     ///< have none
  std::vector<Rank> unexpected = {};  ///< have one that should not be
  std::vector<Rank> not_finite = {};
  std::vector<Rank> coupled = {};      ///< have the sum of contributions, which is not that of the whole batch
  std::vector<Rank> wrong = {};        ///< have something else
  std::vector<double> deviation = {};  ///< of those that are wrong: largest error of an element, relative to it
  double error = 0;                    ///< the largest, relative to the largest element
  double bound = 0;                    ///< where that is
  double closeness = 0;                ///< the largest error of right ones as a part of its bound
  double largest = 0;                  ///< element
};

Inspection inspect(const Gradients& gradients, const std::vector<Rank>& group, const Tolerance& tolerance);

/// The inner products that a diagnosis needs.
Products products_of(const Gradients& gradients, const std::vector<Rank>& group);

}  // namespace tutti::verifying
