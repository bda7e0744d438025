#pragma once

#include "tutti/plan/algorithms.h"
#include "tutti/plan/network.h"

namespace tutti::plan {

/// How many bytes the rank that touches most touches while a plan runs: its blocks (where input and output may be the
/// same memory, that once), its scratch, and the rings to and from its peers. What of it stays in caches is up to that.
double footprint(const Plan& plan, std::size_t bytes_of_block, const Fabric& fabric);

/// The same of a plan that is not there, from the program of one rank of it. `check` has to have been passed.
double footprint(const Request& request, std::size_t bytes_of_block, const Fabric& fabric);

}  // namespace tutti::plan
