#pragma once

#include "tutti/plan/algorithms.h"
#include "tutti/plan/network.h"
#include "tutti/plan/simulate.h"

namespace tutti::plan {

/// What a plan would take, by what is true of its algorithm.
struct Estimate {
  double seconds = 0;
  Spent spent;
  double messages = 0;       ///< sent by the rank that sends most
  double all_messages = 0;   ///< sent by all, about
  double further_chunk = 0;  ///< what the busiest processor or link needs for one, where chunks follow each other
};

/// Whether there is an estimate for such a plan: for all but hybrids with a ring inside of hosts.
bool can_estimate(const Request& request);

/// Prices a plan without building it, in about as many operations as there are ranks, times the logarithm of that where
/// ranks double. Rings are followed around once; everyone's messages to everybody are counted per link; rounds of other
/// algorithms share links as in the simulator, but what is in different rounds does not meet. Within a few per cent of
/// the simulator where ranks are alike. `check(request)`, `check(network, ranks)` and `can_estimate` hold.
Estimate estimate(const Request& request, std::size_t bytes_of_block, const Fabric& fabric);

}  // namespace tutti::plan
