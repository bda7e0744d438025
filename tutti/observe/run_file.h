#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "tutti/base/error.h"

namespace tutti::observe {

/// Where the record of a run lies: `run.json` in its folder, or the file itself. An error when nothing is there.
Result<std::string> find_run(const std::string& folder_or_file);

/// What was recorded of a run, from such a file: an object of the format that this program knows. Its fields are not
/// looked at. Blocks.
Result<nlohmann::json> read_run(const std::string& file);

}  // namespace tutti::observe
