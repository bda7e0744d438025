#pragma once

#include <string>
#include <vector>

#include "cli/rank_runner.h"

namespace tutti::cli {

/// The whole environment of one rank: `base`, then the share's variables, then the rank's place and its secret's
/// descriptor. Also a default for OMP_NUM_THREADS, where nobody set it: the host's cores shared evenly. Pure.
std::vector<std::string> rank_environment(const std::vector<std::string>& base, const Share& share, int local_rank,
                                          int cores);

/// This process's environment as a list.
std::vector<std::string> own_environment();

}  // namespace tutti::cli
