#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

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
    if (!others_ || others_->first != second) {
      others_.emplace(second, all_before(second));
    }
    return others_->second[first];
  }

  /// Too many steps wait by way of other ranks: what is not known to be before may be so.
  bool gave_up() const { return visits_ > kMostVisits; }

 private:
  /// By way of other ranks: seldom needed, so looked for only then.
  std::vector<bool> all_before(std::uint32_t last) {
    std::vector<bool> seen(events_.size(), false);
    std::vector<std::uint32_t> open{last};
    const auto reach = [&](std::uint32_t event) {
      if (!seen[event]) {
        seen[event] = true;
        open.push_back(event);
      }
    };
    while (!open.empty() && !gave_up()) {
      ++visits_;
      const auto event = open.back();
      open.pop_back();
      const auto rank = events_.rank(event);
      const auto& program = plan_.programs[to_index(rank)];
      const auto& step = program.steps[events_.step(event)];
      for (const auto before : program.after_of(step)) {
        reach(events_.number(rank, before));
      }
      if (step.kind == Step::Kind::receive) {
        reach(*events_.other_end(event));
      }
    }
    return seen;
  }

  /// Of two steps of one rank, by that rank's own waiting.
  bool inside(std::uint32_t first, std::uint32_t second) {
    const auto rank = events_.rank(first);
    if (rank != rank_) {
      fill(rank);
    }
    const auto step = events_.step(first);
    return (row(events_.step(second))[step / kBits] >> step % kBits & 1) != 0;
  }

  /// A bit for each step of the rank: whether it is before this one.
  std::span<std::uint64_t> row(std::uint32_t step) { return std::span(earlier_).subspan(step * words_, words_); }

  void fill(Rank rank) {
    rank_ = rank;
    const auto& program = plan_.programs[to_index(rank)];
    words_ = (program.steps.size() + kBits - 1) / kBits;
    earlier_.assign(program.steps.size() * words_, 0);
    for (std::uint32_t i = 0; i < program.steps.size(); ++i) {
      for (const auto before : program.after_of(program.steps[i])) {
        const auto theirs = row(before).first(before / kBits + 1);
        std::transform(theirs.begin(), theirs.end(), row(i).begin(), row(i).begin(), std::bit_or<>());
        row(i)[before / kBits] |= std::uint64_t{1} << before % kBits;
      }
    }
  }

  static constexpr std::size_t kBits = 64;
  static constexpr std::uint64_t kMostVisits = 500'000'000;  // some seconds

  const Plan& plan_;
  const Events& events_;
  Rank rank_{-1};
  std::size_t words_ = 0;
  std::vector<std::uint64_t> earlier_;
  std::uint64_t visits_ = 0;
  std::optional<std::pair<std::uint32_t, std::vector<bool>>> others_;  // of the last one that was asked for
};

/// Of a piece: the last write, and the steps that have read it since.
struct Uses {
  static constexpr std::uint32_t kNobody = ~std::uint32_t{0};

  std::uint32_t writer = kNobody;
  std::vector<std::uint32_t> readers;
};

Found check_races(const Plan& plan, const Events& events, Rank rank, Before& before) {
  const auto& program = plan.programs[to_index(rank)];
  std::array<std::vector<Uses>, 3> all;
  for (const auto buffer : {Buffer::input, Buffer::output, Buffer::scratch}) {
    all[static_cast<std::size_t>(buffer)].resize(plan.pieces_of(rank, buffer));
  }
  const auto use = [&](std::uint32_t step, Span span, bool writes) -> Found {
    const auto place = in_place(plan.shape, rank, span);
    for (auto piece = place.begin; piece < place.end(); ++piece) {
      auto& [writer, readers] = all[static_cast<std::size_t>(place.buffer)][piece];
      const auto races = [&](std::uint32_t earlier) {
        return earlier != step && !before(events.number(rank, earlier), events.number(rank, step));
      };
      auto other = writer != Uses::kNobody && races(writer) ? writer : Uses::kNobody;
      if (writes && other == Uses::kNobody) {
        const auto found = std::find_if(readers.begin(), readers.end(), races);
        other = found == readers.end() ? Uses::kNobody : *found;
      }
      if (other != Uses::kNobody) {
        const bool known = !before.gave_up();
        return flaw_at(plan, known ? Flaw::Kind::race : Flaw::Kind::undecided, rank, step,
                       fmt::format("{} {}, and both touch {} {}",
                                   known ? "it does not wait for" : "it takes too long to follow whether it waits for",
                                   describe(plan, rank, other), to_string(place.buffer), piece));
      }
      if (writes) {
        writer = step;
        readers.clear();
      } else if (readers.empty() || readers.back() != step) {
        readers.push_back(step);
      }
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
