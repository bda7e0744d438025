#include "tutti/plan/prove.h"

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tutti/plan/events.h"

namespace tutti::plan {
namespace {

using Kind = Flaw::Kind;
using Found = std::optional<Flaw>;

std::string text_of(Span span) {
  return span.count == 1 ? fmt::format("{} {}", to_string(span.buffer), span.begin)
                         : fmt::format("{} {}..{}", to_string(span.buffer), span.begin, span.end() - 1);
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
  return fmt::format("{} = {}", text_of(step.span), fmt::join(sources, " + "));
}

std::uint32_t pieces_of(const Plan& plan, Rank rank, Buffer buffer) {
  switch (buffer) {
    case Buffer::input: return plan.shape.input_blocks(rank) * plan.shape.pieces;
    case Buffer::output: return plan.shape.output_blocks(rank) * plan.shape.pieces;
    case Buffer::scratch: break;
  }
  return plan.programs[to_index(rank)].scratch_pieces;
}

Flaw flaw_at(const Plan& plan, Kind kind, Rank rank, std::uint32_t step, std::string_view what) {
  return {kind, rank, step, fmt::format("{}: {}", describe(plan, rank, step), what)};
}

// Whether every step names what there is.

Found check_step(const Plan& plan, Rank rank, std::uint32_t number) {
  const auto& program = plan.programs[to_index(rank)];
  const auto& step = program.steps[number];
  const auto wrong = [&](std::string_view what) { return flaw_at(plan, Kind::malformed, rank, number, what); };
  const auto pieces = plan.shape.pieces;
  const auto inside = [&](Span span) {
    return span.count > 0 && span.begin + std::uint64_t{span.count} <= pieces_of(plan, rank, span.buffer);
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

Found check_steps(const Plan& plan) {
  for (std::size_t rank = 0; rank < plan.programs.size(); ++rank) {
    for (std::uint32_t step = 0; step < plan.programs[rank].steps.size(); ++step) {
      if (auto flaw = check_step(plan, to_rank(rank), step)) {
        return flaw;
      }
    }
  }
  return std::nullopt;
}

const Step& step_of(const Plan& plan, const Events& events, std::uint32_t event) {
  return plan.programs[to_index(events.rank(event))].steps[events.step(event)];
}

Found check_messages(const Plan& plan, const Events& events) {
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

Found check_ends(const Plan& plan, const Events& events) {
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
  while (std::find(way.begin(), way.end(), event) == way.end()) {
    way.push_back(event);
    event = waits_for(event);
  }
  way.erase(way.begin(), std::find(way.begin(), way.end(), event));
  std::vector<std::string> names;
  for (const auto each : way) {
    names.push_back(describe(plan, events.rank(each), events.step(each)));
  }
  return Flaw{Kind::deadlock, events.rank(event), events.step(event),
              fmt::format("these wait for each other: {}", fmt::join(names, "; which waits for "))};
}

// Whether two steps meet in the same memory.

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
          return flaw_at(plan, Kind::race, rank, step,
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

// Whether the result is right.

/// What a piece of memory holds: a piece of inputs (counted over all blocks), whose, how often, and in which order they
/// were added.
struct Content {
  std::uint32_t piece = 0;
  std::vector<std::uint32_t> times;  // by rank
  std::uint64_t order = 0;
};
using Held = std::shared_ptr<const Content>;

std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  auto x = a * 0x9E3779B97F4A7C15ULL + b;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  return x ^ (x >> 27);
}

class Tracer {
 public:
  Tracer(const Plan& plan, bool same_memory) : plan_(plan), same_memory_(same_memory) {
    const auto ranks = static_cast<std::size_t>(plan.shape.ranks);
    memory_.resize(ranks);
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      for (const auto buffer : {Buffer::input, Buffer::output, Buffer::scratch}) {
        memory_[rank][static_cast<std::size_t>(buffer)].resize(pieces_of(plan, to_rank(rank), buffer));
      }
      const auto inputs = pieces_of(plan, to_rank(rank), Buffer::input);
      for (std::uint32_t piece = 0; piece < inputs; ++piece) {
        auto content = std::make_shared<Content>(Content{piece, std::vector<std::uint32_t>(ranks, 0), rank + 1});
        content->times[rank] = 1;
        at(to_rank(rank), {Buffer::input, piece, 1}) = std::move(content);
      }
    }
  }

  Found run(const Events& events) {
    std::map<std::uint32_t, std::vector<Held>> under_way;  // by the event that receives
    for (const auto event : order_events(plan_, events, true)) {
      const auto rank = events.rank(event);
      const auto number = events.step(event);
      const auto& step = plan_.programs[to_index(rank)].steps[number];
      switch (step.kind) {
        case Step::Kind::send: {
          auto& message = under_way[*events.other_end(event)];
          for (std::uint32_t i = 0; i < step.span.count; ++i) {
            message.push_back(at(rank, step.span, i));
            if (!message.back()) {
              return flaw_at(plan_, Kind::result, rank, number, "there is nothing yet");
            }
            if (!is_like(*message.back(), step, i)) {
              return flaw_at(plan_, Kind::result, rank, number, "pieces of another place in a block go");
            }
          }
          break;
        }
        case Step::Kind::receive:
          for (std::uint32_t i = 0; i < step.span.count; ++i) {
            if (!is_like(*under_way[event][i], step, i)) {
              return flaw_at(plan_, Kind::result, rank, number, "pieces of another place in a block come");
            }
            at(rank, step.span, i) = under_way[event][i];
          }
          under_way.erase(event);
          break;
        case Step::Kind::combine:
          if (auto flaw = combine(rank, number)) {
            return flaw;
          }
          break;
      }
    }
    return check_result();
  }

 private:
  Held& at(Rank rank, Span span, std::uint32_t offset = 0) {
    const auto place = same_memory_ ? in_place(plan_.shape, rank, span) : span;
    return memory_[to_index(rank)][static_cast<std::size_t>(place.buffer)][place.begin + offset];
  }

  bool is_like(const Content& content, const Step& step, std::uint32_t offset) const {
    return content.piece % plan_.shape.pieces == (step.like + offset) % plan_.shape.pieces;
  }

  Found combine(Rank rank, std::uint32_t number) {
    const auto& program = plan_.programs[to_index(rank)];
    const auto& step = program.steps[number];
    const auto sources = program.sources_of(step);
    for (std::uint32_t i = 0; i < step.span.count; ++i) {
      auto sum = at(rank, sources[0], i);
      for (std::size_t s = 0; s < sources.size(); ++s) {
        const auto& addend = at(rank, sources[s], i);
        if (!addend) {
          return flaw_at(plan_, Kind::result, rank, number, "there is nothing yet in " + text_of(sources[s]));
        }
        if (addend->piece != sum->piece) {
          return flaw_at(plan_, Kind::result, rank, number,
                         fmt::format("adds piece {} of the input to piece {}", addend->piece, sum->piece));
        }
        sum = s == 0 ? sum : add(*sum, *addend);
      }
      if (!is_like(*sum, step, i)) {
        return flaw_at(plan_, Kind::result, rank, number, "pieces of another place in a block are combined");
      }
      at(rank, step.span, i) = std::move(sum);
    }
    return std::nullopt;
  }

  static Held add(const Content& left, const Content& right) {
    auto sum = std::make_shared<Content>(left);
    std::transform(left.times.begin(), left.times.end(), right.times.begin(), sum->times.begin(), std::plus<>());
    sum->order = mix(left.order, right.order);
    return sum;
  }

  /// Which piece of whose inputs belongs there; a rank below zero: of everybody's.
  std::pair<std::uint32_t, int> wanted(Rank rank, std::uint32_t place) const {
    const auto pieces = plan_.shape.pieces;
    const auto own = static_cast<std::uint32_t>(to_index(rank)) * pieces;
    const auto block = static_cast<int>(place / pieces);
    switch (plan_.shape.op) {
      case Op::all_reduce:
      case Op::reduce: return {place, -1};
      case Op::reduce_scatter: return {own + place, -1};
      case Op::all_gather:
      case Op::gather: return {place % pieces, block};
      case Op::all_to_all: return {own + place % pieces, block};
      case Op::broadcast: return {place, to_int(plan_.shape.root)};
      case Op::scatter: return {own + place, to_int(plan_.shape.root)};
    }
    return {place, -1};
  }

  Found check_piece(Rank rank, std::uint32_t place) {
    const auto& held = at(rank, {Buffer::output, place, 1});
    const auto wrong = [&](std::string_view what) {
      return Flaw{Kind::result, rank, std::nullopt,
                  fmt::format("rank {}: at the end output {} {}", to_int(rank), place, what)};
    };
    if (!held) {
      return wrong("is empty");
    }
    const auto [piece, whose] = wanted(rank, place);
    if (held->piece != piece) {
      return wrong(fmt::format("has piece {} of the input instead of piece {}", held->piece, piece));
    }
    for (std::size_t from = 0; from < held->times.size(); ++from) {
      const auto times = whose < 0 || whose == static_cast<int>(from) ? 1U : 0U;
      if (held->times[from] != times) {
        return wrong(fmt::format("has what rank {} gave {} times instead of {}", from, held->times[from],
                                 times == 1 ? "once" : "never"));
      }
    }
    return std::nullopt;
  }

  Found check_result() {
    for (std::size_t rank = 0; rank < plan_.programs.size(); ++rank) {
      const auto pieces = pieces_of(plan_, to_rank(rank), Buffer::output);
      for (std::uint32_t piece = 0; piece < pieces; ++piece) {
        if (auto flaw = check_piece(to_rank(rank), piece)) {
          return flaw;
        }
        if (plan_.shape.op == Op::all_reduce &&
            at(to_rank(rank), {Buffer::output, piece, 1})->order != at(Rank{0}, {Buffer::output, piece, 1})->order) {
          return Flaw{
              Kind::result, to_rank(rank), std::nullopt,
              fmt::format("rank {}: output {} was added in another order than on rank 0, and may differ from it "
                          "in its last bits",
                          rank, piece)};
        }
      }
    }
    return std::nullopt;
  }

  const Plan& plan_;
  bool same_memory_;
  std::vector<std::array<std::vector<Held>, 3>> memory_;
};

}  // namespace

std::string_view to_string(Flaw::Kind kind) {
  constexpr std::array<std::string_view, 5> kNames{"malformed", "unmatched", "deadlock", "race", "result"};
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
  if (auto flaw = check_steps(plan)) {
    return flaw;
  }
  const Events events(plan);
  if (auto flaw = check_messages(plan, events)) {
    return flaw;
  }
  if (auto flaw = check_ends(plan, events)) {
    return flaw;
  }
  Before before(plan, events);
  for (std::size_t rank = 0; rank < plan.programs.size(); ++rank) {
    if (auto flaw = check_races(plan, events, to_rank(rank), before)) {
      return flaw;
    }
  }
  for (const bool same_memory : {false, true}) {
    if (auto flaw = Tracer(plan, same_memory).run(events)) {
      return flaw;
    }
  }
  return std::nullopt;
}

}  // namespace tutti::plan
