#pragma once

#include <string>
#include <vector>

namespace tutti::cli {

/// `tutti train`: checks everything, then starts the ranks that train. Returns what the tool exits with.
int train_command(const std::vector<std::string>& arguments);

/// `tutti generate`: becomes the program that writes on where a prompt ends.
int generate_command(const std::vector<std::string>& arguments);

}  // namespace tutti::cli
