#pragma once

#include <string>
#include <vector>

namespace tutti::cli {

/// `tutti plan show|check ...`: the plans of collectives, as text and pictures, and the proof that they are right.
int plan_command(const std::vector<std::string>& arguments);

}  // namespace tutti::cli
