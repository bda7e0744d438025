#pragma once

#include <string>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): the parser library's own
class App;
}

namespace tutti::cli {

inline constexpr int kUsageError = 2;

/// An error is one line on standard error. Returns kUsageError.
int complain(const std::string& command, const std::string& sentence);

/// Parses with the usual ends: help is printed and is a success, an error is one line. Negative: go on.
int parse(CLI::App& app, const std::string& command, const std::vector<std::string>& arguments);

}  // namespace tutti::cli
