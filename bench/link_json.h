#pragma once
// What a recording of `tutti bench --links` and its report have in common.

#include <nlohmann/json.hpp>

#include "bench/recording.h"

namespace bench {

/// Whose ranks these were.
nlohmann::ordered_json heading_json(const Recording& recording);
/// A plan, and what it took.
nlohmann::ordered_json case_json(const LinkCase& one);

}  // namespace bench
