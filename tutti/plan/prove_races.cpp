#include <algorithm>
#include <deque>
#include <map>

#include <fmt/format.h>

#include "tutti/plan/proofs.h"

namespace tutti::plan {
namespace {

using Found = std::optional<Flaw>;

/// What must happen before what, over all ranks. Only what always holds: who sends does not wait for who receives.
class Before {
 public:
  Before(const Plan& plan, const Events& events) : plan_(plan), events_(events) {}

  bool operator()(std::uint32_t first, std::uint32_t second) {
    if (inside(first, second)) {
      return true;
    }
    // By way of other ranks: seldom needed, so looked for only then.
    std::vector<bool> seen(events_.size(), false);
    std::deque<std::uint32_t> open{second};
    while (!open.empty()) {
      const auto event = open.front();
      open.pop_front();
      if (event == first) {
        return true;
      }
      if (seen[event]) {
        continue;
      }
      seen[event] = true;
      const auto rank = events_.rank(event);
      const auto& program = plan_.programs[to_index(rank)];
      const auto& step = program.steps[events_.step(event)];
      for (const auto before : program.after_of(step)) {
        open.push_back(events_.number(rank, before));
      }
      if (step.kind == Step::Kind::receive) {
        open.push_back(*events_.other_end(event));
      }
    }
    return false;
  }

 private:
  /// Of two steps of one rank, by that rank's own waiting.
  bool inside(std::uint32_t first, std::uint32_t second) {
    const auto rank = events_.rank(first);
    if (rank != rank_) {
      fill(rank);
    }
    return earlier_[events_.step(second)][events_.step(first)];
  }

  void fill(Rank rank) {
    rank_ = rank;
    const auto& program = plan_.programs[to_index(rank)];
    earlier_.assign(program.steps.size(), std::vector<bool>(program.steps.size(), false));
    for (std::uint32_t i = 0; i < program.steps.size(); ++i) {
      for (const auto before : program.after_of(program.steps[i])) {
        for (std::uint32_t j = 0; j < before; ++j) {
          earlier_[i][j] = earlier_[i][j] || earlier_[before][j];
        }
        earlier_[i][before] = true;
      }
    }
  }

  const Plan& plan_;
  const Events& events_;
  Rank rank_{-1};
  std::vector<std::vector<bool>> earlier_;
};

struct Access {
  std::uint32_t step;
  bool writes;
};

Found check_races(const Plan& plan, const Events& events, Rank rank, Before& before) {
  const auto& program = plan.programs[to_index(rank)];
  std::map<std::pair<Buffer, std::uint32_t>, std::vector<Access>> last;  // the last write, and reads since
  const auto use = [&](std::uint32_t step, Span span, bool writes) -> Found {
    const auto place = in_place(plan.shape, rank, span);
    for (auto piece = place.begin; piece < place.end(); ++piece) {
      auto& accesses = last[{place.buffer, piece}];
      for (const auto& earlier : accesses) {
        if (earlier.step != step && (writes || earlier.writes) &&
            !before(events.number(rank, earlier.step), events.number(rank, step))) {
          return flaw_at(plan, Flaw::Kind::race, rank, step,
                         fmt::format("it does not wait for {}, and both touch {} {}",
                                     describe(plan, rank, earlier.step), to_string(place.buffer), piece));
        }
      }
      if (writes) {
        accesses.clear();
      }
      accesses.push_back({step, writes});
    }
    return std::nullopt;
  };
  for (std::uint32_t i = 0; i < program.steps.size(); ++i) {
    const auto& step = program.steps[i];
    for (const auto& source : program.sources_of(step)) {
      if (auto flaw = use(i, source, false)) {
        return flaw;
      }
    }
    if (auto flaw = use(i, step.span, step.kind != Step::Kind::send)) {
      return flaw;
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<Flaw> find_race(const Plan& plan, const Events& events) {
  Before before(plan, events);
  for (std::size_t rank = 0; rank < plan.programs.size(); ++rank) {
    if (auto flaw = check_races(plan, events, to_rank(rank), before)) {
      return flaw;
    }
  }
  return std::nullopt;
}

}  // namespace tutti::plan
