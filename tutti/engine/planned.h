#pragma once

#include <array>
#include <map>
#include <optional>

#include "tutti/engine/plan_runner.h"
#include "tutti/engine/widened.h"
#include "tutti/plan/algorithms.h"

namespace tutti::engine {

/// Which plan an operation is to be run by.
struct PlanChoice {
  plan::Algorithm algorithm = plan::Algorithm::ring;
  unsigned chunks = 1;
  unsigned leaders = 1;  ///< of each host, for hybrid plans
  bool library = false;  ///< by MPI's own collectives instead, where it has such

  /// From "ring", or "ring/4" for four chunks; "hybrid@2/4" for two leaders; "library".
  static Result<PlanChoice> parse(std::string_view text);
  std::string text() const;
  /// What ranks compare; never 0.
  std::uint32_t mark() const {
    return library ? ~0U : (static_cast<std::uint32_t>(algorithm) + 1) << 24 | leaders << 16 | chunks;
  }

  static constexpr unsigned kMostChunks = 4096;
  static constexpr unsigned kMostLeaders = 255;
};

/// The plan that an operation of the engine is, when it is one.
std::optional<plan::Op> plan_op(Op op);

/// The plans of one rank of a group, by operation: chosen, then built when they are first needed. One thread at a time.
class Planned {
 public:
  Planned(Rank rank, int ranks) : rank_(rank), ranks_(ranks) {}

  /// Who is where, for hybrid plans. Before anything is chosen.
  void set_hosts(std::vector<std::vector<Rank>> hosts) { hosts_ = std::move(hosts); }

  /// From now on; nothing: no plan. Fails when there is no such plan.
  Status choose(Op op, std::optional<PlanChoice> choice);

  /// Whether anything was chosen at all.
  bool any() const { return any_; }

  /// What was chosen for an operation, or nothing.
  const PlanChoice* chosen(Op op) const {
    const auto& choice = choices_[static_cast<std::size_t>(op)];
    return choice ? &*choice : nullptr;
  }

  /// What was chosen for such a call, or nothing. Blocks that differ in length have no plan.
  const PlanChoice* choice_for(const Card& card) const;

  /// Runs a call that has a choice, and that all ranks agree on. Blocks. Sums of 16- and 8-bit floats are rounded once.
  Status run(const Call& call, Links& links, const Doing& doing, Deadline deadline);

 private:
  PlanRunner& runner_for(const Card& card);
  plan::Request request_of(Op op, const PlanChoice& choice, Rank root) const;

  Rank rank_;
  int ranks_;
  std::vector<std::vector<Rank>> hosts_;
  bool any_ = false;
  std::array<std::optional<PlanChoice>, std::size(kOpNames)> choices_;
  std::map<std::pair<Op, Rank>, PlanRunner> runners_;
  Widened widened_;
};

}  // namespace tutti::engine
