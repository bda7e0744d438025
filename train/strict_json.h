#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "tutti/base/error.h"

namespace tutti::train {

/// Reads JSON that others wrote. More than the library's parser asks for: a key stands once in its object, and nothing
/// is nested deeper than 32. An error is a sentence without the file's name. Pure.
Result<nlohmann::json> parse_strictly(std::string_view text);

/// A value as a sentence shows it: short, on one line, and nothing that a terminal would act on.
std::string shown(const nlohmann::json& value);

}  // namespace tutti::train
