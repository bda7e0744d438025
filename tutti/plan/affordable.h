#pragma once

#include <optional>
#include <vector>

#include "tutti/plan/network.h"
#include "tutti/plan/tuner.h"

namespace tutti::plan {

/// The candidates without plans that, by what is known of the network, take more than `times` as long as the quickest
/// of them: those need not be timed. What is no plan stays; so does everything where hosts have different numbers of
/// ranks, which networks do not know.
std::vector<std::optional<Choice>> affordable(std::vector<std::optional<Choice>> candidates, Op op,
                                              const GroupShape& shape, std::size_t bytes, Network network,
                                              double times);

}  // namespace tutti::plan
