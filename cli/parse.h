#pragma once

#include <string>
#include <vector>

#include "tutti/base/error.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the parser library's own
class App;
}

namespace tutti::cli {

inline constexpr int kUsageError = 2;

/// An error is one line on standard error. Returns kUsageError.
int complain(const std::string& command, const std::string& sentence);

/// Parses with the usual ends: help is printed and is a success, an error is one line. Negative: go on.
int parse(CLI::App& app, const std::string& command, const std::vector<std::string>& arguments);

/// "4096", "64Ki", "25Mi", "1.5Gi". An error names the option.
Result<std::size_t> parse_bytes(const std::string& option, const std::string& text);

}  // namespace tutti::cli
