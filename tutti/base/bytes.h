#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "tutti/base/error.h"

namespace tutti {

/// "4096", "64Ki", "25Mi", "1.5Gi"; a "B" may follow. At least 1.
Result<std::size_t> parse_bytes(std::string_view text);

/// What it is read from, as short as is exact: "64Ki".
std::string spell_bytes(std::size_t bytes);

}  // namespace tutti
