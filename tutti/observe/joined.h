#pragma once

#include <nlohmann/json_fwd.hpp>

#include "tutti/observe/run_record.h"

namespace tutti::observe {

/// What was recorded of a run that was interrupted, and of the same run since it went on, as one: its steps, up to
/// those that were made again, timelines, events, traffic and the time it took. Stragglers and memory are of ranks, and
/// those of `now` where there were others before. Rows are thinned to the limits. Where `before` is not what a record
/// gives, `now` alone. Pure.
nlohmann::json joined(const nlohmann::json& before, nlohmann::json now, const RecordLimits& limits = {});

}  // namespace tutti::observe
