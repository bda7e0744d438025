#include "tutti/plan/prove.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tutti/plan/proofs.h"

namespace tutti::plan {
namespace {

using Kind = Flaw::Kind;
using Found = std::optional<Flaw>;

/// A sentence stays one that can be read, however many there are.
std::string some_of(std::vector<std::string> names, std::string_view between) {
  constexpr std::size_t kMost = 64;
  if (names.size() > kMost) {
    const auto rest = names.size() - kMost;
    names.resize(kMost);
    names.push_back(fmt::format("{} more", rest));
  }
  return fmt::to_string(fmt::join(names, between));
}

std::string text_of(const Program& program, const Step& step) {
  switch (step.kind) {
    case Step::Kind::send: return fmt::format("send {} to rank {}", text_of(step.span), to_int(step.peer));
    case Step::Kind::receive: return fmt::format("receive {} from rank {}", text_of(step.span), to_int(step.peer));
    case Step::Kind::combine: break;
  }
  std::vector<std::string> sources;
  for (const auto& source : program.sources_of(step)) {
    sources.push_back(text_of(source));
  }
  return fmt::format("{} = {}", text_of(step.span), some_of(sources, " + "));
}

// Whether every step names what there is.

Found check_step(const Plan& plan, Rank rank, std::uint32_t number) {
  const auto& program = plan.programs[to_index(rank)];
  const auto& step = program.steps[number];
  const auto wrong = [&](std::string_view what) { return flaw_at(plan, Kind::malformed, rank, number, what); };
  const auto pieces = plan.shape.pieces;
  const auto inside = [&](Span span) {
    return span.count > 0 && span.begin + std::uint64_t{span.count} <= plan.pieces_of(rank, span.buffer);
  };
  // Blocks need not lie next to each other.
  const auto in_a_block = [&](Span span) {
    return span.buffer == Buffer::scratch || span.begin / pieces == (span.end() - 1) / pieces;
  };
  if (!inside(step.span)) {
    return wrong("there are no such pieces");
  }
  if (!in_a_block(step.span)) {
    return wrong("it is more than one block");
  }
  if (pieces > 1 && std::uint64_t{step.like} + step.span.count > pieces) {
    return wrong(fmt::format("it is like pieces {} and on of a block, which has {}", step.like, pieces));
  }
  if (step.kind == Step::Kind::combine) {
    if (program.sources_of(step).empty()) {
      return wrong("nothing to combine");
    }
    for (const auto& source : program.sources_of(step)) {
      if (!inside(source)) {
        return wrong("there are no such pieces");
      }
      if (!in_a_block(source)) {
        return wrong("it is more than one block");
      }
      if (source.count != step.span.count) {
        return wrong("what is combined differs in length");
      }
    }
  } else if (to_int(step.peer) < 0 || to_int(step.peer) >= plan.shape.ranks || step.peer == rank) {
    return wrong("no such peer");
  }
  if (step.kind != Step::Kind::send && step.span.buffer == Buffer::input) {
    return wrong("the input is not to be written");
  }
  for (const auto before : program.after_of(step)) {
    if (before >= number) {
      return wrong(fmt::format("it waits for step {}, which comes later", before));
    }
  }
  return std::nullopt;
}

const Step& step_of(const Plan& plan, const Events& events, std::uint32_t event) {
  return plan.programs[to_index(events.rank(event))].steps[events.step(event)];
}

}  // namespace

std::string text_of(Span span) {
  if (span.count < 2) {
    return fmt::format("{}{} {}", span.count == 0 ? "nothing at " : "", to_string(span.buffer), span.begin);
  }
  return fmt::format("{} {}..{}", to_string(span.buffer), span.begin, span.begin + std::uint64_t{span.count} - 1);
}

Flaw flaw_at(const Plan& plan, Kind kind, Rank rank, std::uint32_t step, std::string_view what) {
  return {kind, rank, step, fmt::format("{}: {}", describe(plan, rank, step), what)};
}

Found find_malformed(const Plan& plan) {
  for (std::size_t rank = 0; rank < plan.programs.size(); ++rank) {
    for (std::uint32_t step = 0; step < plan.programs[rank].steps.size(); ++step) {
      if (auto flaw = check_step(plan, to_rank(rank), step)) {
        return flaw;
      }
    }
  }
  return std::nullopt;
}

Found find_unmatched(const Plan& plan, const Events& events) {
  for (std::uint32_t event = 0; event < events.size(); ++event) {
    const auto& step = step_of(plan, events, event);
    if (step.kind == Step::Kind::combine) {
      continue;
    }
    const auto at = [&](std::string_view what) {
      return flaw_at(plan, Kind::unmatched, events.rank(event), events.step(event), what);
    };
    const auto other = events.other_end(event);
    if (!other) {
      return at(step.kind == Step::Kind::send ? "nobody receives it" : "nobody sends it");
    }
    const auto& there = step_of(plan, events, *other);
    if (there.span.count != step.span.count) {
      return at(fmt::format("its other end is {}, of another length",
                            describe(plan, events.rank(*other), events.step(*other))));
    }
  }
  return std::nullopt;
}

// Whether it ends.

Found find_deadlock(const Plan& plan, const Events& events) {
  const auto order = order_events(plan, events, false);
  if (order.size() == events.size()) {
    return std::nullopt;
  }
  std::vector<bool> stuck(events.size(), true);
  for (const auto event : order) {
    stuck[event] = false;
  }
  // From one that is stuck to one that it waits for, until one comes again.
  const auto waits_for = [&](std::uint32_t event) {
    std::vector<std::uint32_t> ends{event};
    if (const auto other = events.other_end(event)) {
      ends.push_back(*other);
    }
    for (const auto end : ends) {
      const auto rank = events.rank(end);
      const auto& program = plan.programs[to_index(rank)];
      for (const auto before : program.after_of(program.steps[events.step(end)])) {
        if (stuck[events.number(rank, before)]) {
          return events.number(rank, before);
        }
      }
      if (const auto earlier = events.earlier_message(end); earlier && stuck[*earlier]) {
        return *earlier;
      }
    }
    require(false, "what is stuck waits for something that is");
    return event;
  };
  auto event = static_cast<std::uint32_t>(std::find(stuck.begin(), stuck.end(), true) - stuck.begin());
  std::vector<std::uint32_t> way;
  std::vector<bool> seen(events.size(), false);
  while (!seen[event]) {
    seen[event] = true;
    way.push_back(event);
    event = waits_for(event);
  }
  way.erase(way.begin(), std::find(way.begin(), way.end(), event));
  std::vector<std::string> names;
  for (const auto each : way) {
    names.push_back(describe(plan, events.rank(each), events.step(each)));
  }
  return Flaw{Kind::deadlock, events.rank(event), events.step(event),
              fmt::format("these wait for each other: {}", some_of(std::move(names), "; which waits for "))};
}

std::string_view to_string(Flaw::Kind kind) {
  constexpr std::array<std::string_view, 6> kNames{"malformed", "unmatched", "deadlock", "race", "result", "undecided"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string describe(const Plan& plan, Rank rank, std::uint32_t step) {
  const auto& program = plan.programs[to_index(rank)];
  return fmt::format("rank {}, step {}: {}", to_int(rank), step, text_of(program, program.steps[step]));
}

std::optional<Flaw> prove(const Plan& plan) {
  if (plan.programs.size() != static_cast<std::size_t>(plan.shape.ranks) || plan.shape.pieces == 0) {
    return Flaw{Kind::malformed, Rank{0}, std::nullopt,
                fmt::format("a plan for {} ranks has {} programs", plan.shape.ranks, plan.programs.size())};
  }
  if (auto flaw = find_malformed(plan)) {
    return flaw;
  }
  const Events events(plan);
  for (const auto find : {find_unmatched, find_deadlock, find_race, find_wrong_result}) {
    if (auto flaw = find(plan, events)) {
      return flaw;
    }
  }
  return std::nullopt;
}

}  // namespace tutti::plan
