#include "tutti/plan/rooted.h"

namespace tutti::plan {
namespace {

bool is_root(const Team& team) { return team.me == 0; }

/// Where a rank that is not the root keeps the sums that go through it: it has no output.
Span on_the_way(Builder& builder, const Team& team) {
  return is_root(team) ? builder.output() : builder.scratch(builder.shape().pieces);
}

void take_own(Builder& builder, const Team& team) {
  if (is_root(team)) {
    builder.copy(builder.output(), builder.input());
  }
}

}  // namespace

void direct_reduce(Builder& builder, const Team& team, Span from, Span to, unsigned chunks) {
  const auto n = team.size();
  const auto incoming = builder.scratch(is_root(team) ? from.count * static_cast<std::uint32_t>(n - 1) : 0);
  for (unsigned c = 0; c < chunks; ++c) {
    const auto own = from.part(c, chunks);
    if (!is_root(team)) {
      builder.send(team.at(0), own);
      continue;
    }
    if (n == 1) {
      builder.copy(to.part(c, chunks), own);
      continue;
    }
    std::vector<Span> sources{own};
    for (std::size_t i = 1; i < n; ++i) {
      sources.push_back(incoming.part(i - 1, n - 1).part(c, chunks));
      builder.receive(team.at(i), sources.back(), own);
    }
    builder.combine(to.part(c, chunks), sources);
  }
}

void direct_broadcast(Builder& builder, const Team& team, Span span, unsigned chunks) {
  for (unsigned c = 0; c < chunks; ++c) {
    if (!is_root(team)) {
      builder.receive(team.at(0), span.part(c, chunks));
      continue;
    }
    for (std::size_t i = 1; i < team.size(); ++i) {
      builder.send(team.at(i), span.part(c, chunks));
    }
  }
}

void ring_reduce_to_first(Builder& builder, const Team& team, Span from, Span to, unsigned chunks) {
  ring_reduce_scatter(builder, team, slices_of(team, from), slices_of(team, to), chunks);
  for (std::size_t i = 1; i < team.size(); ++i) {
    if (is_root(team)) {
      builder.receive(team.at(i), to.part(i, team.size()));
    } else if (i == team.me) {
      builder.send(team.at(0), to.part(i, team.size()));
    }
  }
}

void ring_broadcast_from_first(Builder& builder, const Team& team, Span span, unsigned chunks) {
  for (std::size_t i = 1; i < team.size(); ++i) {
    if (is_root(team)) {
      builder.send(team.at(i), span.part(i, team.size()));
    } else if (i == team.me) {
      builder.receive(team.at(0), span.part(i, team.size()));
    }
  }
  ring_all_gather(builder, team, slices_of(team, span), chunks);
}

void tree_broadcast(Builder& builder, const Team& team, unsigned chunks) {
  take_own(builder, team);
  tree_broadcast(builder, team, binary_branch(team.size(), team.me), builder.output(), chunks);
}

void binomial_broadcast(Builder& builder, const Team& team, unsigned chunks) {
  take_own(builder, team);
  tree_broadcast(builder, team, binomial_branch(team.size(), team.me), builder.output(), chunks);
}

void direct_broadcast(Builder& builder, const Team& team, unsigned chunks) {
  take_own(builder, team);
  direct_broadcast(builder, team, builder.output(), chunks);
}

void scatter_gather_broadcast(Builder& builder, const Team& team, unsigned chunks) {
  take_own(builder, team);
  ring_broadcast_from_first(builder, team, builder.output(), chunks);
}

void tree_reduce(Builder& builder, const Team& team, unsigned chunks) {
  tree_reduce(builder, team, binary_branch(team.size(), team.me), builder.input(), on_the_way(builder, team), chunks);
}

void direct_reduce(Builder& builder, const Team& team, unsigned chunks) {
  direct_reduce(builder, team, builder.input(), is_root(team) ? builder.output() : Span{}, chunks);
}

void scatter_gather_reduce(Builder& builder, const Team& team, unsigned chunks) {
  ring_reduce_to_first(builder, team, builder.input(), on_the_way(builder, team), chunks);
}

void direct_gather(Builder& builder, const Team& team, unsigned chunks) {
  if (is_root(team)) {
    builder.copy(builder.output(to_index(builder.me())), builder.input());
  }
  for (unsigned c = 0; c < chunks; ++c) {
    if (!is_root(team)) {
      builder.send(team.at(0), builder.input().part(c, chunks));
      continue;
    }
    for (std::size_t i = 1; i < team.size(); ++i) {
      builder.receive(team.at(i), builder.output(to_index(team.at(i))).part(c, chunks));
    }
  }
}

void direct_scatter(Builder& builder, const Team& team, unsigned chunks) {
  if (is_root(team)) {
    builder.copy(builder.output(), builder.input(to_index(builder.me())));
  }
  for (unsigned c = 0; c < chunks; ++c) {
    if (!is_root(team)) {
      builder.receive(team.at(0), builder.output().part(c, chunks));
      continue;
    }
    for (std::size_t i = 1; i < team.size(); ++i) {
      builder.send(team.at(i), builder.input(to_index(team.at(i))).part(c, chunks));
    }
  }
}

// A member holds the blocks of those below it behind its own, in the team's order.

void binomial_gather(Builder& builder, const Team& team) {
  const auto n = team.size();
  const auto branch = binomial_branch(n, team.me);
  const auto pieces = builder.shape().pieces;
  if (!branch.parent && n == 1) {
    builder.copy(builder.output(), builder.input());
    return;
  }
  const auto weight = binomial_weight(n, team.me);
  const auto held = builder.scratch(pieces * static_cast<std::uint32_t>(weight));
  const auto blocks = [&](std::size_t place, std::size_t count) {
    return Span{Buffer::scratch, held.begin + static_cast<std::uint32_t>(place - team.me) * pieces,
                static_cast<std::uint32_t>(count) * pieces};
  };
  builder.copy(blocks(team.me, 1), builder.input());
  for (auto child = branch.children.rbegin(); child != branch.children.rend(); ++child) {  // the lightest is done first
    const auto theirs = blocks(*child, binomial_weight(n, *child));
    builder.receive(team.at(*child), theirs, {Buffer::input, 0, theirs.count});
  }
  if (branch.parent) {
    builder.send(team.at(*branch.parent), held);
    return;
  }
  for (std::size_t i = 0; i < n; ++i) {
    builder.copy(builder.output(to_index(team.at(i))), blocks(i, 1));
  }
}

void binomial_scatter(Builder& builder, const Team& team) {
  const auto n = team.size();
  const auto branch = binomial_branch(n, team.me);
  const auto pieces = builder.shape().pieces;
  const auto weight = binomial_weight(n, team.me);
  const auto held = builder.scratch(pieces * static_cast<std::uint32_t>(weight));
  const auto blocks = [&](std::size_t place, std::size_t count) {
    return Span{Buffer::scratch, held.begin + static_cast<std::uint32_t>(place - team.me) * pieces,
                static_cast<std::uint32_t>(count) * pieces};
  };
  if (branch.parent) {
    builder.receive(team.at(*branch.parent), held, {Buffer::input, 0, held.count});
  } else {
    for (std::size_t i = 0; i < n; ++i) {
      builder.copy(blocks(i, 1), builder.input(to_index(team.at(i))));
    }
  }
  for (const auto child : branch.children) {  // the heaviest has most left to do
    builder.send(team.at(child), blocks(child, binomial_weight(n, child)));
  }
  builder.copy(builder.output(), blocks(team.me, 1));
}

}  // namespace tutti::plan
