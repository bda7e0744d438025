#pragma once

#include <array>
#include <map>
#include <optional>

#include "tutti/engine/plan_runner.h"
#include "tutti/plan/algorithms.h"

namespace tutti::engine {

/// Which plan an operation is to be run by.
struct PlanChoice {
  plan::Algorithm algorithm = plan::Algorithm::ring;
  unsigned chunks = 1;

  /// From "ring", or "ring/4" for four chunks.
  static Result<PlanChoice> parse(std::string_view text);
  std::string text() const;
  /// What ranks compare; never 0.
  std::uint32_t mark() const { return (static_cast<std::uint32_t>(algorithm) + 1) << 16 | chunks; }
};

/// The plan that an operation of the engine is, when it is one.
std::optional<plan::Op> plan_op(Op op);

/// The plans of one rank of a group, by operation: chosen, then built when they are first needed. One thread at a time.
class Planned {
 public:
  Planned(Rank rank, int ranks) : rank_(rank), ranks_(ranks) {}

  /// From now on; nothing: no plan. Fails when there is no such plan.
  Status choose(Op op, std::optional<PlanChoice> choice);

  /// Whether anything was chosen at all.
  bool any() const { return any_; }

  /// What was chosen for such a call, or nothing. Blocks that differ in length have no plan; nor have 16- and 8-bit
  /// floats one that would round their sums more than once.
  const PlanChoice* choice_for(const Card& card) const;

  /// For a call that has a choice.
  PlanRunner& runner(const Card& card);

 private:
  Rank rank_;
  int ranks_;
  bool any_ = false;
  std::array<std::optional<PlanChoice>, std::size(kOpNames)> choices_;
  std::map<std::pair<Op, Rank>, PlanRunner> runners_;
};

}  // namespace tutti::engine
