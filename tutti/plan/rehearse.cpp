#include "tutti/plan/rehearse.h"

#include <algorithm>
#include <array>
#include <map>
#include <random>

#include <fmt/format.h>

#include "tutti/plan/events.h"

namespace tutti::plan {
namespace {

using Number = std::uint64_t;  // sums wrap around: exact, in any order

/// Differs for all pieces of all ranks, so that no two wrong sums are right by chance.
Number contribution(Rank rank, std::uint32_t piece) {
  auto x = (to_index(rank) + 1) * 0x9E3779B97F4A7C15ULL + (piece + 1) * 0xD1B54A32D192ED03ULL;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

class Stage {
 public:
  Stage(const Plan& plan, const Rehearsal& rehearsal) : plan_(plan), rehearsal_(rehearsal), events_(plan) {
    for (std::size_t rank = 0; rank < plan.programs.size(); ++rank) {
      auto& memory = memory_.emplace_back();
      for (const auto buffer : {Buffer::input, Buffer::output, Buffer::scratch}) {
        memory[static_cast<std::size_t>(buffer)].resize(plan.pieces_of(to_rank(rank), buffer));
      }
      const auto inputs = static_cast<std::uint32_t>(memory[0].size());
      for (std::uint32_t piece = 0; piece < inputs; ++piece) {
        at(to_rank(rank), {Buffer::input, piece, 1}, 0) = contribution(to_rank(rank), piece);
      }
    }
    done_.assign(events_.size(), false);
  }

  std::optional<std::string> run() {
    std::mt19937_64 lot(rehearsal_.seed);
    std::vector<std::uint32_t> waiting(events_.size());
    for (std::uint32_t event = 0; event < events_.size(); ++event) {
      waiting[event] = event;
    }
    while (!waiting.empty()) {
      std::shuffle(waiting.begin(), waiting.end(), lot);
      const auto next = std::find_if(waiting.begin(), waiting.end(), [this](auto event) { return may_happen(event); });
      if (next == waiting.end()) {
        return fmt::format("{} steps wait for ever", waiting.size());
      }
      happen(*next);
      std::erase_if(waiting, [this](auto event) { return done_[event]; });
    }
    return check();
  }

 private:
  Number& at(Rank rank, Span span, std::uint32_t offset) {
    const auto place = rehearsal_.same_memory ? in_place(plan_.shape, rank, span) : span;
    return memory_[to_index(rank)][static_cast<std::size_t>(place.buffer)][place.begin + offset];
  }

  const Step& step_of(std::uint32_t event) const {
    return plan_.programs[to_index(events_.rank(event))].steps[events_.step(event)];
  }

  bool is_ready(std::uint32_t event) const {
    const auto rank = events_.rank(event);
    const auto& program = plan_.programs[to_index(rank)];
    for (const auto before : program.after_of(step_of(event))) {
      if (!done_[events_.number(rank, before)]) {
        return false;
      }
    }
    const auto earlier = events_.earlier_message(event);
    return !earlier || done_[*earlier];
  }

  bool may_happen(std::uint32_t event) const {
    if (!is_ready(event)) {
      return false;
    }
    const auto kind = step_of(event).kind;
    if (kind == Step::Kind::combine || (kind == Step::Kind::send && rehearsal_.buffered)) {
      return true;
    }
    const auto other = events_.other_end(event);
    return other &&
           (kind == Step::Kind::receive && rehearsal_.buffered ? under_way_.contains(event) : is_ready(*other));
  }

  void happen(std::uint32_t event) {
    const auto& step = step_of(event);
    if (step.kind == Step::Kind::combine) {
      combine(event);
    } else if (!rehearsal_.buffered) {
      const auto other = *events_.other_end(event);
      const bool sends = step.kind == Step::Kind::send;
      send(sends ? event : other);
      receive(sends ? other : event);
    } else if (step.kind == Step::Kind::send) {
      send(event);
    } else {
      receive(event);
    }
  }

  void send(std::uint32_t event) {
    const auto& span = step_of(event).span;
    if (const auto other = events_.other_end(event)) {
      auto& message = under_way_[*other];
      for (std::uint32_t i = 0; i < span.count; ++i) {
        message.push_back(at(events_.rank(event), span, i));
      }
    }
    done_[event] = true;
  }

  void receive(std::uint32_t event) {
    const auto& span = step_of(event).span;
    const auto& message = under_way_[event];
    for (std::uint32_t i = 0; i < std::min<std::size_t>(span.count, message.size()); ++i) {
      at(events_.rank(event), span, i) = message[i];
    }
    under_way_.erase(event);
    done_[event] = true;
  }

  void combine(std::uint32_t event) {
    const auto rank = events_.rank(event);
    const auto& step = step_of(event);
    for (std::uint32_t i = 0; i < step.span.count; ++i) {
      Number sum = 0;
      for (const auto& source : plan_.programs[to_index(rank)].sources_of(step)) {
        sum += at(rank, source, i);
      }
      at(rank, step.span, i) = sum;
    }
    done_[event] = true;
  }

  Number expected(Rank rank, std::uint32_t place) const {
    const auto pieces = plan_.shape.pieces;
    const auto own = static_cast<std::uint32_t>(to_index(rank)) * pieces + place % pieces;
    Number sum = 0;
    switch (plan_.shape.op) {
      case Op::all_reduce:
      case Op::reduce:
      case Op::reduce_scatter:
        for (int from = 0; from < plan_.shape.ranks; ++from) {
          sum += contribution(Rank{from}, plan_.shape.op == Op::reduce_scatter ? own : place);
        }
        return sum;
      case Op::all_gather:
      case Op::gather: return contribution(to_rank(place / pieces), place % pieces);
      case Op::all_to_all: return contribution(to_rank(place / pieces), own);
      case Op::broadcast: return contribution(plan_.shape.root, place);
      case Op::scatter: return contribution(plan_.shape.root, own);
    }
    return sum;
  }

  std::optional<std::string> check() {
    for (std::size_t rank = 0; rank < plan_.programs.size(); ++rank) {
      const auto count = plan_.pieces_of(to_rank(rank), Buffer::output);
      for (std::uint32_t place = 0; place < count; ++place) {
        if (at(to_rank(rank), {Buffer::output, place, 1}, 0) != expected(to_rank(rank), place)) {
          return fmt::format("rank {}: output {} is wrong", rank, place);
        }
      }
    }
    return std::nullopt;
  }

  const Plan& plan_;
  Rehearsal rehearsal_;
  Events events_;
  std::vector<std::array<std::vector<Number>, 3>> memory_;
  std::vector<bool> done_;
  std::map<std::uint32_t, std::vector<Number>> under_way_;  // by the event that receives
};

}  // namespace

std::optional<std::string> rehearse(const Plan& plan, const Rehearsal& rehearsal) {
  return Stage(plan, rehearsal).run();
}

}  // namespace tutti::plan
