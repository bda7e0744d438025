#include <algorithm>
#include <bit>

#include "tutti/plan/team.h"

namespace tutti::plan {

void ring_reduce_scatter(Builder& builder, const Team& team, const Slices& from, const Slices& to, unsigned chunks) {
  const auto n = team.size();
  if (n == 1) {
    builder.copy(to(0), from(0));
    return;
  }
  const auto next = team.at(team.me + 1);
  const auto previous = team.at(team.me + n - 1);
  const auto incoming = builder.scratch(2 * from(0).count);
  for (std::size_t step = 0; step + 1 < n; ++step) {
    const auto leaves = (team.me + 2 * n - 1 - step) % n;
    const auto comes = (team.me + 2 * n - 2 - step) % n;
    for (unsigned c = 0; c < chunks; ++c) {
      builder.send(next, (step == 0 ? from(leaves) : to(leaves)).part(c, chunks));
      const auto landing = incoming.part(step % 2, 2).part(c, chunks);
      builder.receive(previous, landing, from(comes).part(c, chunks));
      builder.combine(to(comes).part(c, chunks), {landing, from(comes).part(c, chunks)});
    }
  }
}

void ring_all_gather(Builder& builder, const Team& team, const Slices& slices, unsigned chunks) {
  const auto n = team.size();
  for (std::size_t step = 0; step + 1 < n; ++step) {
    const auto leaves = (team.me + n - step) % n;
    const auto comes = (team.me + 2 * n - 1 - step) % n;
    for (unsigned c = 0; c < chunks; ++c) {
      builder.send(team.at(team.me + 1), slices(leaves).part(c, chunks));
      builder.receive(team.at(team.me + n - 1), slices(comes).part(c, chunks));
    }
  }
}

void direct_reduce_scatter(Builder& builder, const Team& team, const Slices& from, const Slices& to, unsigned chunks) {
  const auto n = team.size();
  const auto own = from(team.me);
  const auto incoming = builder.scratch(own.count * static_cast<std::uint32_t>(n - 1));
  for (unsigned c = 0; c < chunks; ++c) {
    const auto chunk = own.part(c, chunks);
    if (n == 1) {
      builder.copy(to(0).part(c, chunks), chunk);
      continue;
    }
    std::vector<Span> sources(n, chunk);
    // Each begins with the one after it, so that not all write to the same one at once.
    for (std::size_t i = 1; i < n; ++i) {
      const auto place = (team.me + i) % n;
      builder.send(team.at(place), from(place).part(c, chunks));
    }
    for (std::size_t i = 1; i < n; ++i) {
      const auto place = (team.me + n - i) % n;
      sources[place] = incoming.part(i - 1, n - 1).part(c, chunks);
      builder.receive(team.at(place), sources[place], chunk);
    }
    builder.combine(to(team.me).part(c, chunks), sources);
  }
}

void direct_all_gather(Builder& builder, const Team& team, const Slices& slices, unsigned chunks) {
  const auto n = team.size();
  for (unsigned c = 0; c < chunks; ++c) {
    for (std::size_t i = 1; i < n; ++i) {
      builder.send(team.at(team.me + i), slices(team.me).part(c, chunks));
    }
    for (std::size_t i = 1; i < n; ++i) {
      const auto place = (team.me + n - i) % n;
      builder.receive(team.at(place), slices(place).part(c, chunks));
    }
  }
}

void tree_reduce(Builder& builder, const Team& team, const Branch& branch, Span from, Span to, unsigned chunks) {
  const auto kept = std::min(chunks, 4U);  // of each child: enough for one to come while another is added
  const auto children = branch.children.size();
  const auto chunk = from.count / chunks;
  const auto incoming = builder.scratch(static_cast<std::uint32_t>(children) * kept * chunk);
  for (unsigned c = 0; c < chunks; ++c) {
    const auto own = from.part(c, chunks);
    std::vector<Span> sources{own};
    for (std::size_t i = 0; i < children; ++i) {
      sources.push_back(incoming.part(i, children).part(c % kept, kept));
      builder.receive(team.at(branch.children[i]), sources.back(), own);
    }
    if (children > 0) {
      builder.combine(to.part(c, chunks), sources);
    } else if (!branch.parent) {
      builder.copy(to.part(c, chunks), own);
    }
    if (branch.parent) {
      builder.send(team.at(*branch.parent), children > 0 ? to.part(c, chunks) : own);
    }
  }
}

void tree_broadcast(Builder& builder, const Team& team, const Branch& branch, Span span, unsigned chunks) {
  for (unsigned c = 0; c < chunks; ++c) {
    const auto chunk = span.part(c, chunks);
    if (branch.parent) {
      builder.receive(team.at(*branch.parent), chunk);
    }
    for (const auto child : branch.children) {
      builder.send(team.at(child), chunk);
    }
  }
}

}  // namespace tutti::plan
