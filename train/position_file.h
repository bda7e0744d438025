#pragma once

#include <string>

#include "train/batches.h"
#include "tutti/base/error.h"

namespace tutti::train {

/// As text for a file.
std::string position_text(const Position& position);

/// How far the training in a folder has come, by its position.json. Blocks. An error names the file.
Result<Position> read_position(const std::string& folder);

}  // namespace tutti::train
