#pragma once

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "tutti/plan/events.h"

namespace tutti::plan {

/// Which steps wait for a step of their rank, for all steps of a plan.
class Waiting {
 public:
  Waiting(const Plan& plan, const Events& events) : first_(events.size() + 1, 0) {
    const auto each = [&](const auto& visit) {
      for (std::size_t rank = 0; rank < plan.programs.size(); ++rank) {
        const auto& program = plan.programs[rank];
        for (std::uint32_t i = 0; i < program.steps.size(); ++i) {
          for (const auto before : program.after_of(program.steps[i])) {
            visit(events.number(to_rank(rank), before), events.number(to_rank(rank), i));
          }
        }
      }
    };
    each([&](std::uint32_t before, std::uint32_t) { ++first_[before + 1]; });
    for (std::size_t i = 0; i + 1 < first_.size(); ++i) {
      first_[i + 1] += first_[i];
    }
    steps_.resize(first_.back());
    auto next = first_;
    each([&](std::uint32_t before, std::uint32_t after) { steps_[next[before]++] = after; });
  }

  std::span<const std::uint32_t> on(std::uint32_t event) const {
    return std::span(steps_).subspan(first_[event], first_[event + 1] - first_[event]);
  }

 private:
  std::vector<std::uint32_t> first_;
  std::vector<std::uint32_t> steps_;
};

/// What waits for the ranks' processors, each of which does one thing at a time.
class WorkQueues {
 public:
  WorkQueues(std::size_t ranks, std::size_t events) : ranks_(ranks), behind_(events, kNone) {}

  /// True: the processor is idle, and begins at once. Otherwise it is put in line; `first` goes before all that is not.
  bool ask(std::uint32_t rank, std::uint32_t event, bool first) {
    auto& queue = ranks_[rank];
    if (!queue.working) {
      queue.working = true;
      return true;
    }
    auto& line = queue.lines[first ? 0 : 1];
    (line.last == kNone ? line.first : behind_[line.last]) = event;
    line.last = event;
    return false;
  }

  /// What the processor begins when it is done with something.
  std::optional<std::uint32_t> next(std::uint32_t rank) {
    for (auto& line : ranks_[rank].lines) {
      if (const auto event = line.first; event != kNone) {
        line.first = behind_[event];
        line.last = line.first == kNone ? kNone : line.last;
        behind_[event] = kNone;
        return event;
      }
    }
    ranks_[rank].working = false;
    return std::nullopt;
  }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  struct Line {
    std::uint32_t first = kNone;
    std::uint32_t last = kNone;
  };
  struct Queue {
    std::array<Line, 2> lines;
    bool working = false;
  };

  std::vector<Queue> ranks_;
  std::vector<std::uint32_t> behind_;  // an event, in its line
};

}  // namespace tutti::plan
