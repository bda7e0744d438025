#pragma once

#include <functional>

namespace CLI {  // NOLINT(readability-identifier-naming): the parser library's own
class App;
}

namespace tutti::cli {

/// Declares the options of `tutti plan cost`; what it gives back runs it, when they have been parsed: the exit code.
std::function<int()> declare_plan_cost(CLI::App& app);

}  // namespace tutti::cli
