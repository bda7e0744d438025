#pragma once

#include <vector>

#include "tutti/plan/algorithms.h"
#include "tutti/plan/network.h"

namespace tutti::plan {

/// Whether callers have the input where the output is, as a whole.
inline bool is_in_place(Op op) { return op == Op::all_reduce || op == Op::reduce || op == Op::broadcast; }

/// By rank, how many bytes it touches while a plan runs: its blocks (where input and output may be the same memory,
/// that once), its scratch, and the rings to and from its peers.
std::vector<double> footprints(const Plan& plan, std::size_t bytes_of_block, const Fabric& fabric);

/// About the same of a plan that is not there, from the program of one rank of it. `check` has to have been passed.
double footprint(const Request& request, std::size_t bytes_of_block, const Fabric& fabric);

}  // namespace tutti::plan
