#pragma once

#include <span>

#include "tutti/plan/algorithms.h"
#include "tutti/plan/network.h"

namespace tutti::plan {

// From plans that were timed on the machines at hand to a network's figures. Pure: who times, and how, is another's
// matter.

/// A plan that was run.
struct TimedPlan {
  Request request;
  int ranks_of_host = 0;  ///< that took part; 0: as many as the network has
  std::size_t bytes = 0;  ///< of a block; 0: ranks only met
  double seconds = 0;     ///< that it took
};

/// What the simulator says it takes.
Result<double> simulated_seconds(const TimedPlan& timed, const Network& network);

/// The network whose simulated times come nearest to these: least squares of the logarithms of their ratios. Every
/// figure of `guess` that is not 0 may move, to a thousandth or a thousandfold at most; what the plans do not tell
/// stays near the guess. Plans of a few sizes, algorithms and numbers of ranks, simulated a thousand times or more:
/// take small ones, and more of them than there are figures. Errors as of `simulate`, and where a plan has no time.
Result<Network> calibrate(const Network& guess, std::span<const TimedPlan> plans);

}  // namespace tutti::plan
