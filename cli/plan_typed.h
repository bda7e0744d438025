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

/// Whether what was typed means something for that operation and algorithm: nothing is ignored.
Status check_meaning(const CLI::App& app, const PlanChoice& choice);

/// What a hybrid is made of.
Result<plan::Algorithm> parse_inner(const PlanChoice& choice);
Result<plan::Algorithm> parse_outer(const PlanChoice& choice);

/// Ranks of plans that are shown, proved or priced.
inline constexpr int kMostPlanRanks = 65'536;

/// "8": how many ranks.
Result<int> parse_ranks(const std::string& text);

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
