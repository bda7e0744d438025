#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tutti/base/error.h"
#include "tutti/plan/algorithms.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the parser library's own
class App;
}

namespace tutti::cli {

/// What is typed after `tutti plan`, whatever is done with the plans.
struct PlanChoice {
  std::string algorithm = "all";
  std::string op = "all_reduce";
  unsigned chunks = 1;
  std::string inner = "direct";
  std::string outer = "halving_doubling";
  unsigned leaders = 1;
  bool json = false;
};

/// Declares the options that mean the same everywhere: --op, --inner, --json.
void declare_choice(CLI::App& app, PlanChoice& choice);

/// How many for that one: of all, those that take none have one.
unsigned chunks_for(const PlanChoice& choice, plan::Algorithm algorithm, plan::Op op);

/// The one that was typed, or `all`.
Result<std::vector<plan::Algorithm>> chosen_algorithms(const PlanChoice& choice, std::vector<plan::Algorithm> all);

/// What is typed after `tutti plan show` and `tutti plan check`.
struct TypedPlan {
  PlanChoice choice;
  std::string ranks = "4";
  int root = 0;
  std::string hosts;
  std::string svg;
};

void declare(CLI::App& app, TypedPlan& typed);

/// "8" or "2..64".
Result<std::pair<int, int>> parse_range(const std::string& text);

/// One request for each algorithm that is meant.
Result<std::vector<plan::Request>> requests_of(const TypedPlan& typed, int ranks);

Status write_file(const std::string& path, const std::string& text);

}  // namespace tutti::cli
