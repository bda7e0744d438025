#pragma once
// What is found, in words.

#include <string>
#include <vector>

#include "tutti/verify/report.h"

namespace tutti::verifying {

/// "rank 2", "ranks 0-3", "ranks 1, 3"
std::string ranks_text(const std::vector<Rank>& ranks);

/// "4", "1/3", "4/3" where it is one, otherwise a few digits
std::string factor_text(double factor);

/// What it probably is, and what to do about it, where so many ranks' gradients are averaged.
std::string hint_for(const Finding& finding, int group, int microbatches);

}  // namespace tutti::verifying
