#pragma once

#include "tutti/plan/algorithms.h"
#include "tutti/plan/builder.h"

/// Inside of this room: all-reduces inside of hosts, then between them, then inside again.
namespace tutti::plan {

/// Whether hosts, leaders and the two algorithms fit each other.
Status check_hybrid(const Request& request);

/// Into how many pieces it divides a block.
std::uint64_t hybrid_pieces(const Request& request);
void hybrid_all_reduce(Builder& builder, const Request& request);

}  // namespace tutti::plan
