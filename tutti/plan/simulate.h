#pragma once

#include <vector>

#include "tutti/plan/network.h"
#include "tutti/plan/plan.h"
#include "tutti/plan/spent.h"

namespace tutti::plan {

/// What crossed a link.
struct LinkUse {
  double bytes = 0;
  double busy = 0;  ///< seconds in which something crossed it
};

/// How a plan would go.
struct Simulated {
  double seconds = 0;
  std::vector<double> ends;    ///< when each rank has done its last step
  std::vector<LinkUse> links;  ///< numbered as the fabric does
  Spent spent;                 ///< the chain that ends last: its total is `seconds`
};

/// Runs a plan without running it. Every rank has one processor, which does one thing at a time: it adds first, then
/// begins and ends messages in the order in which they can be. A message costs the sender's processor, crosses the
/// links of its path (one behind the other between the same two ranks, evenly divided with others), is there after the
/// latency, and costs the receiver's processor. Messages of no bytes are none. The same plan takes the same time,
/// always. An error when the plan never ends, or the network has no room for its ranks.
Result<Simulated> simulate(const Plan& plan, std::size_t bytes_of_block, const Network& network);

/// What each takes of many runs, one behind the other, as where plans are timed. Hosts that are done with one early
/// have said so before the last are, which then begin the next at once.
Result<double> seconds_in_a_row(const Plan& plan, std::size_t bytes_of_block, const Network& network);

}  // namespace tutti::plan
