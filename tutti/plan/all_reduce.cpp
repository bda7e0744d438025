#include <algorithm>
#include <bit>

#include "tutti/plan/team.h"

namespace tutti::plan {

void ring_all_reduce(Builder& builder, const Team& team, Span from, Span to, unsigned chunks) {
  ring_reduce_scatter(builder, team, slices_of(team, from), slices_of(team, to), chunks);
  ring_all_gather(builder, team, slices_of(team, to), chunks);
}

void tree_all_reduce(Builder& builder, const Team& team, Span from, Span to, unsigned chunks) {
  const auto branch = binary_branch(team.size(), team.me);
  tree_reduce(builder, team, branch, from, to, chunks);
  tree_broadcast(builder, team, branch, to, chunks);
}

void double_tree_all_reduce(Builder& builder, const Team& team, Span from, Span to, unsigned chunks) {
  for (const bool second : {false, true}) {
    const auto half = second ? 1U : 0U;
    tree_reduce(builder, team, double_branch(team.size(), team.me, second), from.part(half, 2), to.part(half, 2),
                chunks);
  }
  for (const bool second : {false, true}) {
    tree_broadcast(builder, team, double_branch(team.size(), team.me, second), to.part(second ? 1 : 0, 2), chunks);
  }
}

void one_shot_all_reduce(Builder& builder, const Team& team, Span from, Span to, unsigned chunks) {
  const auto n = team.size();
  const auto incoming = builder.scratch(from.count * static_cast<std::uint32_t>(n - 1));
  for (unsigned c = 0; c < chunks; ++c) {
    const auto own = from.part(c, chunks);
    if (n == 1) {
      builder.copy(to.part(c, chunks), own);
      continue;
    }
    std::vector<Span> sources(n, own);
    for (std::size_t i = 1; i < n; ++i) {
      builder.send(team.at(team.me + i), own);
    }
    for (std::size_t i = 1; i < n; ++i) {
      const auto place = (team.me + n - i) % n;
      sources[place] = incoming.part(i - 1, n - 1).part(c, chunks);
      builder.receive(team.at(place), sources[place], own);
    }
    builder.combine(to.part(c, chunks), sources);
  }
}

/// All chunks' first shots come before the second ones: those need not wait for an addition.
void two_shot_all_reduce(Builder& builder, const Team& team, Span from, Span to, unsigned chunks) {
  for (unsigned c = 0; c < chunks; ++c) {
    direct_reduce_scatter(builder, team, slices_of(team, from.part(c, chunks)), slices_of(team, to.part(c, chunks)), 1);
  }
  for (unsigned c = 0; c < chunks; ++c) {
    direct_all_gather(builder, team, slices_of(team, to.part(c, chunks)), 1);
  }
}

namespace {

/// A power of two of the members do the work. Each of the others hands what it has to its neighbour before, and gets
/// the result from it.
struct Folded {
  std::size_t active = 0;            ///< how many work
  std::optional<std::size_t> place;  ///< among them, when this one does
  std::optional<Rank> other;         ///< that this one stands for, or that stands for it

  explicit Folded(const Team& team) : active(std::bit_floor(team.size())) {
    const auto folded = team.size() - active;
    const bool paired = team.me < 2 * folded;
    if (paired) {
      other = team.at(team.me ^ 1);
    }
    if (!paired) {
      place = team.me - folded;
    } else if (team.me % 2 == 0) {
      place = team.me / 2;
    }
  }

  Rank at(const Team& team, std::size_t which) const {
    const auto folded = team.size() - active;
    return team.at(which < folded ? 2 * which : which + folded);
  }
};

/// What is to be worked on by those who do: what others handed over is added to it.
Span fold(Builder& builder, const Folded& folded, Span from, Span to) {
  if (!folded.other) {
    return from;
  }
  if (!folded.place) {
    builder.send(*folded.other, from);
    return from;
  }
  const auto incoming = builder.scratch(from.count);
  builder.receive(*folded.other, incoming, from);
  builder.combine(to, {from, incoming});
  return to;
}

void unfold(Builder& builder, const Folded& folded, Span to) {
  if (!folded.other) {
    return;
  }
  if (folded.place) {
    builder.send(*folded.other, to);
  } else {
    builder.receive(*folded.other, to);
  }
}

/// What two have is added in the same order by both.
void add_in_order(Builder& builder, Span to, Span own, Span incoming, bool own_first) {
  if (own_first) {
    builder.combine(to, {own, incoming});
  } else {
    builder.combine(to, {incoming, own});
  }
}

}  // namespace

void recursive_doubling_all_reduce(Builder& builder, const Team& team, Span from, Span to, unsigned chunks) {
  const Folded folded(team);
  for (unsigned c = 0; c < chunks; ++c) {
    const auto out = to.part(c, chunks);
    auto own = fold(builder, folded, from.part(c, chunks), out);
    if (folded.place) {
      for (std::size_t bit = 1; bit < folded.active; bit *= 2) {
        const auto partner = folded.at(team, *folded.place ^ bit);
        const auto incoming = builder.scratch(out.count);
        builder.send(partner, own);
        builder.receive(partner, incoming, out);
        add_in_order(builder, out, own, incoming, (*folded.place & bit) == 0);
        own = out;
      }
      builder.copy(out, own);
    }
    unfold(builder, folded, out);
  }
}

namespace {

/// What one of those who work does with one chunk.
class Halving {
 public:
  Halving(Builder& builder, const Team& team, const Folded& folded, Span own, Span to)
      : builder_(builder),
        team_(team),
        folded_(folded),
        source_(own),
        to_(to),
        unit_(to.count / static_cast<std::uint32_t>(folded.active)) {}

  /// Swaps halves of what it has still to add, and adds its own.
  void halve(std::size_t half) {
    const auto partner = folded_.at(team_, *folded_.place ^ half);
    const bool lower = (*folded_.place & half) == 0;
    const auto kept = lower ? begin_ : begin_ + half;
    const auto incoming = builder_.scratch(static_cast<std::uint32_t>(half) * unit_);
    builder_.send(partner, range(source_, lower ? begin_ + half : begin_, half));
    builder_.receive(partner, incoming, range(to_, kept, half));
    add_in_order(builder_, range(to_, kept, half), range(source_, kept, half), incoming, lower);
    source_ = to_;
    begin_ = kept;
  }

  /// Swaps what is ready for as much from the other.
  void double_up(std::size_t half) {
    const auto partner = folded_.at(team_, *folded_.place ^ half);
    const bool lower = (*folded_.place & half) == 0;
    const auto theirs = lower ? begin_ + half : begin_ - half;
    builder_.send(partner, range(to_, begin_, half));
    builder_.receive(partner, range(to_, theirs, half));
    begin_ = std::min(begin_, theirs);
  }

  void settle() { builder_.copy(to_, source_); }

 private:
  Span range(Span of, std::size_t begin, std::size_t count) const {
    return {of.buffer, of.begin + static_cast<std::uint32_t>(begin) * unit_, static_cast<std::uint32_t>(count) * unit_};
  }

  Builder& builder_;
  const Team& team_;
  const Folded& folded_;
  Span source_;
  Span to_;
  std::uint32_t unit_;
  std::size_t begin_ = 0;
};

}  // namespace

/// Halves are exchanged with the farthest first, until each has one part of the sum; then the way back. All chunks take
/// a step before any takes the next: a partner gets the first part of every chunk before it waits for the last of one.
void halving_doubling_all_reduce(Builder& builder, const Team& team, Span from, Span to, unsigned chunks) {
  const Folded folded(team);
  std::vector<Halving> working;
  for (unsigned c = 0; c < chunks; ++c) {
    const auto out = to.part(c, chunks);
    const auto own = fold(builder, folded, from.part(c, chunks), out);
    if (folded.place) {
      working.emplace_back(builder, team, folded, own, out);
    }
  }
  for (auto half = folded.active / 2; half > 0; half /= 2) {
    for (auto& chunk : working) {
      chunk.halve(half);
    }
  }
  for (auto& chunk : working) {
    chunk.settle();
  }
  for (std::size_t half = 1; half < folded.active; half *= 2) {
    for (auto& chunk : working) {
      chunk.double_up(half);
    }
  }
  for (unsigned c = 0; c < chunks; ++c) {
    unfold(builder, folded, to.part(c, chunks));
  }
}

}  // namespace tutti::plan
