#pragma once

#include <string>
#include <vector>

namespace tutti::cli {

/// `tutti verify`: runs a program that calls tutti::verify as the ranks of a job, and says what came of it. Returns
/// what the tool exits with: 0 only when something was verified, and all of it was right.
int verify_command(const std::vector<std::string>& arguments);

}  // namespace tutti::cli
