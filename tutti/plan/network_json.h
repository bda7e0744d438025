#pragma once

#include <string>

#include "tutti/plan/network.h"

namespace tutti::plan {

/// Networks as JSON; the format is described in docs/pricing.md. Errors name `where` (a file), the key, and what is
/// expected there.
Result<Network> parse_network(const std::string& text, const std::string& where);
Result<Network> read_network(const std::string& path);
std::string to_json(const Network& network);

}  // namespace tutti::plan
