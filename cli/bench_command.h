#pragma once

#include <string>
#include <vector>

namespace tutti::cli {

/// `tutti bench`: starts the ranks that measure, and lets the first one tell. Returns what the tool exits with.
int bench_command(const std::vector<std::string>& arguments);

}  // namespace tutti::cli
