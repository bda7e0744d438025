#pragma once

#include <string_view>

namespace tutti {

/// What is wrong with a gradient, a parameter or a buffer of ranks that should do what one process does.
enum class Cause {
  scaled,               ///< the right gradient, times a factor
  not_synchronized,     ///< a rank has its own contribution alone
  partly_synchronized,  ///< combined over some of the axes only
  over_other_axis,      ///< combined over an axis that it must not be
  missing,              ///< a rank's contribution is not in it
  counted_twice,        ///< a rank's contribution is in it twice
  replaced,             ///< a rank's place was taken by another's contribution: both had the same rows
  wrong_sign,           ///< a contribution was subtracted
  weighted,             ///< contributions count more or less than their rows
  lost_microbatch,      ///< some of the backward passes that make up a step are not in it
  stale_weights,        ///< computed with the weights of the step before
  rounded,              ///< right, but rounded to a smaller type
  gradient_missing,     ///< there is none where there should be
  gradient_unexpected,  ///< there is one where there should be none
  not_finite,           ///< infinite, or not a number
  rows_coupled,         ///< ranks' gradients do not add up to that of the whole batch: rows depend on each other
  random,               ///< the same rows and weights give different gradients
  started_differently,  ///< ranks had different parameters before the first step
  step_skipped,         ///< a rank's parameters did not change when the others' did
  parameter_diverged,   ///< ranks' parameters became different in some other way
  buffer_diverged,      ///< ranks' buffers are different
  other_loss,           ///< gradients are right, but the loss is not
  other_weights,        ///< gradients are right, but after some steps weights are not: steps differ
  unknown,              ///< wrong, and nothing explains it
};

/// "not_synchronized"
std::string_view to_string(Cause cause);

}  // namespace tutti
