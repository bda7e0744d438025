#pragma once

#include <array>
#include <map>
#include <tuple>

#include "tutti/engine/plan_runner.h"
#include "tutti/engine/widened.h"
#include "tutti/plan/algorithms.h"
#include "tutti/plan/choice.h"
#include "tutti/plan/tuning.h"

namespace tutti::engine {

/// By what an operation is run, by size and by where its tensors lie.
struct OpChoices {
  plan::Choices ordinary;
  plan::Choices symmetric;

  OpChoices() = default;
  /// Wherever they lie.
  OpChoices(const plan::Choices& both) : ordinary(both), symmetric(both) {}
  OpChoices(const plan::Choice& both) : OpChoices(plan::Choices(both)) {}
  OpChoices(plan::Choices those_in_ordinary, plan::Choices those_in_symmetric)
      : ordinary(std::move(those_in_ordinary)), symmetric(std::move(those_in_symmetric)) {}
};

/// The plan that an operation of the engine is, when it is one.
std::optional<plan::Op> plan_op(Op op);

/// What was chosen for the operations of one rank of a group; plans are built when they are first needed. One thread at
/// a time.
class Planned {
 public:
  Planned(Rank rank, int ranks) : rank_(rank), ranks_(ranks) {}

  /// Who is where: for hybrid plans, and so that neighbours in others are on one host, or on hosts that are next to
  /// each other. Before anything is chosen.
  void set_hosts(std::vector<std::vector<Rank>> hosts);

  /// From now on. Fails when there is no such plan; other kinds of choices are for the engine to check.
  Status choose(Op op, const OpChoices& choices);

  /// Whether anything was chosen at all.
  bool any() const { return any_; }

  /// What was chosen for such a call, or null. Blocks that differ in length have no choice.
  const plan::Choice* choice_for(const Card& card, plan::Memory memory = plan::Memory::ordinary) const {
    return card.plain && card.bytes != 0 ? chosen_for(card, memory) : nullptr;
  }
  /// The same, whatever its blocks are.
  const plan::Choice* chosen_for(const Card& card, plan::Memory memory = plan::Memory::ordinary) const {
    const auto& chosen = choices_[static_cast<std::size_t>(card.op)];
    return (memory == plan::Memory::ordinary ? chosen.ordinary : chosen.symmetric).find(card.bytes);
  }

  /// What ranks compare that may come to different choices, since their blocks differ: the same only where all that
  /// was chosen for the operation is. 0: nothing was.
  std::uint32_t mark(Op op) const { return marks_[static_cast<std::size_t>(op)]; }

  /// Runs a call by a plan that was chosen, and that all ranks agree on. Blocks. Sums of 16- and 8-bit floats are
  /// rounded once.
  Status run(const Call& call, const plan::Choice& choice, Links& links, const Doing& doing, Deadline deadline);

 private:
  PlanRunner& runner_for(const Card& card, const plan::Choice& choice);
  plan::Request request_of(Op op, const plan::Choice& choice, Rank root) const;

  Rank rank_;
  int ranks_;
  std::vector<std::vector<Rank>> hosts_;
  std::vector<Rank> order_;  // of ranks, by host; empty where they are numbered so
  bool any_ = false;
  std::array<OpChoices, std::size(kOpNames)> choices_;
  std::array<std::uint32_t, std::size(kOpNames)> marks_{};
  std::map<std::tuple<Op, Rank, std::uint32_t>, PlanRunner> runners_;  // by the choice's mark
  PlanRunner::Scratch scratch_ = PlanRunner::new_scratch();            // of all of them
  Widened widened_;
};

}  // namespace tutti::engine
