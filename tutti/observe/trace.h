#pragma once

#include <nlohmann/json_fwd.hpp>

#include "tutti/base/error.h"

namespace tutti::observe {

/// The timelines of a run, in the format of report/README.md, as a trace that Perfetto and chrome://tracing open: a
/// process for each rank, in it a thread "computation" with the phases and as many threads "in flight" as buckets were
/// on their way at once, so that none covers another. Times are microseconds.
///
/// A run keeps the times inside of its recorded steps, not those between them: in the trace the steps follow each other
/// with a gap between, and a process "steps" says where each is. What is missing or of another kind in the run is left
/// out; an error when it has no timelines. Pure.
Result<nlohmann::json> trace_of(const nlohmann::json& run);

}  // namespace tutti::observe
