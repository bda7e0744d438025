#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tutti/plan/algorithms.h"
#include "tutti/plan/network.h"
#include "tutti/plan/simulate.h"

namespace tutti::plan {

/// Where a price comes from.
enum class How {
  simulated,     ///< the whole plan was
  extrapolated,  ///< a plan with fewer chunks was, from which each further one follows
  estimated,     ///< by what is true of the algorithm, see `estimate`
};

std::string_view to_string(How how);

/// What a plan takes.
struct Price {
  Request request;
  double seconds = 0;
  double bus_bandwidth = 0;  ///< bytes per second that every rank's link would need in the best of plans
  double messages = 0;       ///< sent by the rank that sends most
  Spent spent;
  How how = How::simulated;
};

struct PriceOptions {
  /// Plans of no more messages are simulated whole; of eight times as many those that cannot be estimated.
  double most_simulated = 240'000;
  /// Of which the quickest is taken, where an algorithm has chunks.
  std::vector<unsigned> chunks = {1, 2, 4, 8, 16, 32, 64};
  /// Of hybrids without hosts; 0: the best of one and all ranks of a host.
  unsigned leaders = 0;
  /// Of those between hosts; nothing: the best of several.
  std::optional<Algorithm> outer = {};
};

/// What the plan takes that is asked for, with its chunks. Errors as of `check`.
Result<Price> price(const Request& request, std::size_t bytes_of_block, const Network& network,
                    const PriceOptions& options = {});

/// The same with the chunks, and for a hybrid without hosts the leaders and the algorithm between hosts, that take
/// least.
Result<Price> cheapest(const Request& request, std::size_t bytes_of_block, const Network& network,
                       const PriceOptions& options = {});

/// Ranks by host, as the network has them.
std::vector<std::vector<Rank>> hosts_of(const Fabric& fabric);

/// "hybrid, 8 leaders, ring": the algorithm, and what else was chosen.
std::string name_of(const Request& request);

}  // namespace tutti::plan
