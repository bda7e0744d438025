#include <algorithm>
#include <array>
#include <limits>
#include <memory>

#include <fmt/format.h>

#include "tutti/plan/proofs.h"

namespace tutti::plan {
namespace {

using Kind = Flaw::Kind;
using Found = std::optional<Flaw>;

/// What a piece of memory holds: a piece of inputs (counted over all blocks), whose, how often, and in which order they
/// were added.
struct Content {
  std::uint32_t piece = 0;
  std::vector<std::uint32_t> times;  // by rank
  std::uint64_t order = 0;
};
// Counts end here: one that wraps around could come to be once.
constexpr auto kMostTimes = std::numeric_limits<std::uint32_t>::max();
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
        memory_[rank][static_cast<std::size_t>(buffer)].resize(plan.pieces_of(to_rank(rank), buffer));
      }
      const auto inputs = plan.pieces_of(to_rank(rank), Buffer::input);
      for (std::uint32_t piece = 0; piece < inputs; ++piece) {
        auto content = std::make_shared<Content>(Content{piece, std::vector<std::uint32_t>(ranks, 0), rank + 1});
        content->times[rank] = 1;
        at(to_rank(rank), {Buffer::input, piece, 1}) = std::move(content);
      }
    }
  }

  Found run(const Events& events) {
    // At the first of its ends that comes a message is passed on: the other one waits for nothing more. So none is
    // under way, however far a sender might be ahead; and the result is the same, since nothing races.
    std::vector<bool> passed_on(events.size(), false);
    for (const auto event : order_events(plan_, events, false)) {
      const auto rank = events.rank(event);
      const auto number = events.step(event);
      if (const auto other = events.other_end(event)) {
        const bool sends = plan_.programs[to_index(rank)].steps[number].kind == Step::Kind::send;
        auto flaw = passed_on[event] ? Found() : pass_on(events, sends ? event : *other, sends ? *other : event);
        if (flaw) {
          return flaw;
        }
        passed_on[*other] = true;
      } else if (auto flaw = combine(rank, number)) {
        return flaw;
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

  Found pass_on(const Events& events, std::uint32_t send, std::uint32_t receive) {
    const auto from = events.rank(send);
    const auto to = events.rank(receive);
    const auto& here = plan_.programs[to_index(from)].steps[events.step(send)];
    const auto& there = plan_.programs[to_index(to)].steps[events.step(receive)];
    for (std::uint32_t i = 0; i < here.span.count; ++i) {
      const auto& held = at(from, here.span, i);
      if (!held) {
        return flaw_at(plan_, Kind::result, from, events.step(send), "there is nothing yet");
      }
      if (!is_like(*held, here, i)) {
        return flaw_at(plan_, Kind::result, from, events.step(send), "pieces of another place in a block go");
      }
      if (!is_like(*held, there, i)) {
        return flaw_at(plan_, Kind::result, to, events.step(receive), "pieces of another place in a block come");
      }
      at(to, there.span, i) = held;
    }
    return std::nullopt;
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
    std::transform(left.times.begin(), left.times.end(), right.times.begin(), sum->times.begin(),
                   [](auto a, auto b) { return a > kMostTimes - b ? kMostTimes : a + b; });
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
        return wrong(fmt::format("has what rank {} gave {}{} times instead of {}", from,
                                 held->times[from] == kMostTimes ? "at least " : "", held->times[from],
                                 times == 1 ? "once" : "never"));
      }
    }
    return std::nullopt;
  }

  Found check_result() {
    for (std::size_t rank = 0; rank < plan_.programs.size(); ++rank) {
      const auto pieces = plan_.pieces_of(to_rank(rank), Buffer::output);
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

std::optional<Flaw> find_wrong_result(const Plan& plan, const Events& events) {
  for (const bool same_memory : {false, true}) {
    if (auto flaw = Tracer(plan, same_memory).run(events)) {
      return flaw;
    }
  }
  return std::nullopt;
}

}  // namespace tutti::plan
