#pragma once

#include "cli/run_options.h"

namespace tutti::cli {

/// Runs a job as `options` say and returns what the tool exits with. Call before any thread exists.
int run_command(const RunOptions& options);

}  // namespace tutti::cli
