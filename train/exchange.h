#pragma once

#include <span>
#include <string>
#include <vector>

#include "tutti/comm/group.h"

namespace tutti::train {

/// Every rank's numbers, by rank, on every rank; all have equally many. Blocks until all ranks are here.
std::vector<std::vector<double>> gather(const Group& group, std::span<const double> own);

/// Whether all ranks say yes. Blocks until they did.
bool all_agree(const Group& group, bool own);

}  // namespace tutti::train
