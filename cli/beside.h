#pragma once

#include <string>
#include <vector>

#include "tutti/base/error.h"

namespace tutti::cli {

/// A program of ours that users do not call: it lies beside the tool or, installed, in libexec. An error says that it
/// has to be built.
Result<std::string> find_beside(const std::string& name);

/// This process becomes that program. Returns only when it cannot: what the tool exits with. `name` is the command's.
int become(const std::string& name, std::vector<std::string> command);

/// Whether a launcher started this process as one of several ranks: then there are no others to be started.
bool is_rank();

}  // namespace tutti::cli
