#pragma once

#include <functional>

namespace CLI {  // NOLINT(readability-identifier-naming): the parser library's own
class App;
}

namespace tutti::cli {

/// Declares the options of `tutti plan check`; what is returned runs it once they are parsed, and gives the exit code.
std::function<int()> declare_plan_check(CLI::App& app);

}  // namespace tutti::cli
