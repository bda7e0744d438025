#include "tutti/plan/estimate.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "tutti/plan/footprint.h"
#include "tutti/plan/piece_bytes.h"
#include "tutti/plan/priced_movements.h"

namespace tutti::plan {
namespace {

Branch first_tree(std::size_t size, std::size_t place) { return double_branch(size, place, false); }
Branch second_tree(std::size_t size, std::size_t place) { return double_branch(size, place, true); }

/// The first above all others.
Branch star(std::size_t size, std::size_t place) {
  Branch branch;
  if (place > 0) {
    branch.parent = 0;
    return branch;
  }
  for (std::size_t child = 1; child < size; ++child) {
    branch.children.push_back(child);
  }
  return branch;
}

/// What is asked for, and the sizes that follow.
struct Pricing {
  const Request& request;
  double block;
  double piece;  ///< bytes of the longest
  Rounds& rounds;
  Members all = {};  ///< beginning with the root

  double ranks() const { return request.ranks; }
  std::vector<Members> everybody() const { return {all}; }
  /// Where it is not there already.
  void copy_own(const Members& ranks) const {
    if (!is_in_place(request.op)) {
      rounds.combine(ranks, 1, block);
    }
  }
};

/// One chunk of an all-reduce by teams at the same time. `piece`: bytes of the smallest part that it speaks of.
void price_chunk(Rounds& rounds, Algorithm algorithm, const std::vector<Members>& teams, double chunk, double piece) {
  const auto members = teams[0].size();
  switch (algorithm) {
    case Algorithm::tree:
    case Algorithm::double_tree: {
      Forest forest;
      const bool one = algorithm == Algorithm::tree;
      for (const auto& team : teams) {
        forest.add(team, one ? BranchOf(binary_branch) : BranchOf(first_tree), piece);
        if (!one) {
          forest.add(team, second_tree, piece);
        }
      }
      forest.reduce(rounds);
      forest.broadcast(rounds);
      return;
    }
    case Algorithm::recursive_doubling: price_doubling(rounds, teams, piece); return;
    case Algorithm::halving_doubling: price_halving_doubling(rounds, teams, piece, chunk); return;
    case Algorithm::one_shot:
      price_everyone(rounds, teams, chunk);
      for (const auto& team : teams) {
        rounds.combine(team, static_cast<std::uint32_t>(members), chunk);
      }
      return;
    default: {
      // Who has a slice that is not empty gets it from all, adds, and gives it to all.
      const auto owners = std::min(1.0, std::ceil(chunk / piece) / static_cast<double>(members));
      price_everyone(rounds, teams, piece, {.sends = owners, .takes = 1});
      for (const auto& team : teams) {
        rounds.combine(team, static_cast<std::uint32_t>(members), piece);
      }
      price_everyone(rounds, teams, piece, {.sends = 1, .takes = owners});
      return;
    }
  }
}

/// An all-reduce of so many bytes by teams at the same time. `piece`: bytes of the smallest part that it speaks of.
void price_all_reduce(Rounds& rounds, Algorithm algorithm, const std::vector<Members>& teams, double bytes,
                      double piece, unsigned chunks) {
  if (algorithm == Algorithm::ring) {
    price_ring(rounds, teams, {.slice = piece * chunks, .chunks = chunks});
    return;
  }
  rounds.begin_chunks();
  price_chunk(rounds, algorithm, teams, bytes / chunks, piece);
  rounds.end_chunks(chunks);
}

/// Into how many pieces an all-reduce of one team divides what it moves.
double pieces_of(Algorithm algorithm, std::size_t members, unsigned chunks) {
  switch (algorithm) {
    case Algorithm::ring: return static_cast<double>(members) * chunks;
    case Algorithm::tree:
    case Algorithm::recursive_doubling: return chunks;
    case Algorithm::double_tree: return 2.0 * chunks;
    case Algorithm::halving_doubling: return static_cast<double>(std::bit_floor(members)) * chunks;
    case Algorithm::direct: return static_cast<double>(members) * chunks;
    default: return chunks;
  }
}

void price_hybrid(const Pricing& pricing) {
  const auto& request = pricing.request;
  const auto part = pricing.block / request.leaders;
  const bool tree = request.inner == Algorithm::tree;
  const auto chunks = request.chunks;
  Forest inside;
  std::vector<Members> between(request.leaders);
  for (const auto& host : request.hosts) {
    for (unsigned leader = 0; leader < request.leaders; ++leader) {
      auto members = host;
      std::rotate(members.begin(), members.begin() + leader, members.end());
      between[leader].push_back(members[0]);
      inside.add(members, tree ? BranchOf(binary_branch) : BranchOf(star), part / chunks);
    }
  }
  auto& rounds = pricing.rounds;
  const auto piece = part / pieces_of(request.outer, between[0].size(), chunks);
  rounds.begin_chunks();
  inside.reduce(rounds);
  if (request.outer == Algorithm::ring) {  // its slices are not the chunks of those inside
    rounds.end_chunks(chunks);
    price_all_reduce(rounds, request.outer, between, part, piece, chunks);
    rounds.begin_chunks();
  } else {
    price_chunk(rounds, request.outer, between, part / chunks, piece);
  }
  inside.broadcast(rounds);
  rounds.end_chunks(chunks);
}

/// From the root to all others along a tree, or the other way.
void price_tree(const Pricing& pricing, const BranchOf& branch_of, bool up) {
  Forest forest;
  forest.add(pricing.all, branch_of, pricing.piece);
  pricing.rounds.begin_chunks();
  if (up) {
    forest.reduce(pricing.rounds);
  } else {
    pricing.copy_own({pricing.all[0]});
    forest.broadcast(pricing.rounds);
  }
  pricing.rounds.end_chunks(static_cast<unsigned>(std::lround(pricing.block / pricing.piece)));
}

void price_rooted(const Pricing& pricing) {
  auto& rounds = pricing.rounds;
  const auto op = pricing.request.op;
  const bool up = op == Op::reduce || op == Op::gather;
  const auto ring = RingWay{
      .slice = pricing.piece * pricing.request.chunks, .chunks = pricing.request.chunks, .reduces = up, .gathers = !up};
  Forest slices;
  switch (pricing.request.algorithm) {
    case Algorithm::tree: price_tree(pricing, binary_branch, up); return;
    case Algorithm::binomial:
      if (op == Op::broadcast) {
        price_tree(pricing, binomial_branch, false);
        return;
      }
      slices.add(pricing.all, binomial_branch, pricing.block, true);
      pricing.copy_own(up ? pricing.all : Members{pricing.all[0]});
      if (up) {
        slices.reduce(rounds, false);
        rounds.combine({&pricing.all[0], 1}, 1, pricing.block, pricing.ranks());
      } else {
        rounds.combine({&pricing.all[0], 1}, 1, pricing.block, pricing.ranks() - 1);
        slices.broadcast(rounds);
        pricing.copy_own(pricing.all);
      }
      return;
    case Algorithm::scatter_gather:
      slices.add(pricing.all, star, ring.slice);
      if (up) {
        price_ring(rounds, pricing.everybody(), ring);
        slices.reduce(rounds, false);
      } else {
        pricing.copy_own({pricing.all[0]});
        slices.broadcast(rounds);
        price_ring(rounds, pricing.everybody(), ring);
      }
      return;
    default:
      slices.add(pricing.all, star, pricing.piece);
      if (op != Op::reduce) {
        pricing.copy_own({pricing.all[0]});
      }
      rounds.begin_chunks();
      if (up) {
        slices.reduce(rounds, op == Op::reduce);
      } else {
        slices.broadcast(rounds);
      }
      rounds.end_chunks(pricing.request.chunks);
      return;
  }
}

void price_all_to_all(const Pricing& pricing) {
  auto& rounds = pricing.rounds;
  if (pricing.request.algorithm == Algorithm::direct) {
    pricing.copy_own(pricing.all);
    rounds.begin_chunks();
    price_everyone(rounds, pricing.everybody(), pricing.piece);
    rounds.end_chunks(pricing.request.chunks);
    return;
  }
  const auto n = pricing.all.size();
  rounds.combine(pricing.all, 1, pricing.block, pricing.ranks());
  for (std::size_t bit = 1; bit < n; bit *= 2) {
    std::size_t going = 0;
    for (std::size_t way = 0; way < n; ++way) {
      going += (way & bit) != 0 ? 1 : 0;
    }
    std::vector<Rounds::Message> messages;
    for (std::size_t place = 0; place < n; ++place) {
      messages.push_back(
          {pricing.all[place], pricing.all[(place + bit) % n], static_cast<double>(going) * pricing.block});
    }
    rounds.combine(pricing.all, 1, pricing.block, static_cast<double>(going));
    rounds.exchange(messages);
    rounds.combine(pricing.all, 1, pricing.block, static_cast<double>(going));
  }
  rounds.combine(pricing.all, 1, pricing.block, pricing.ranks());
}

void price(const Pricing& pricing) {
  const auto& request = pricing.request;
  auto& rounds = pricing.rounds;
  if (pricing.all.size() == 1) {
    pricing.copy_own(pricing.all);
    return;
  }
  switch (request.op) {
    case Op::all_reduce:
      if (request.algorithm == Algorithm::hybrid) {
        price_hybrid(pricing);
      } else {
        price_all_reduce(rounds, request.algorithm, pricing.everybody(), pricing.block, pricing.piece, request.chunks);
      }
      return;
    case Op::reduce_scatter:
    case Op::all_gather: {
      const bool reduces = request.op == Op::reduce_scatter;
      if (!reduces) {
        pricing.copy_own(pricing.all);
      }
      if (request.algorithm == Algorithm::ring) {
        price_ring(rounds, pricing.everybody(),
                   {.slice = pricing.block, .chunks = request.chunks, .reduces = reduces, .gathers = !reduces});
        return;
      }
      rounds.begin_chunks();
      price_everyone(rounds, pricing.everybody(), pricing.piece);
      if (reduces) {
        rounds.combine(pricing.all, static_cast<std::uint32_t>(request.ranks), pricing.piece);
      }
      rounds.end_chunks(request.chunks);
      return;
    }
    case Op::all_to_all: price_all_to_all(pricing); return;
    default: price_rooted(pricing); return;
  }
}

}  // namespace

bool can_estimate(const Request& request) {
  return request.algorithm != Algorithm::hybrid || request.inner != Algorithm::ring;
}

Estimate estimate(const Request& request, std::size_t bytes_of_block, const Fabric& fabric) {
  Rounds rounds(fabric);
  const auto pieces = shape_of(request).value().pieces;
  Pricing pricing{.request = request,
                  .block = static_cast<double>(bytes_of_block),
                  .piece = static_cast<double>(PieceBytes(bytes_of_block, pieces).each),
                  .rounds = rounds};
  pricing.piece = std::min(pricing.piece, pricing.block);
  for (int i = 0; i < request.ranks; ++i) {
    pricing.all.push_back(Rank{(to_int(request.root) + i) % request.ranks});
  }
  rounds.all_spend({.meeting = fabric.meeting()}, 0);
  price(pricing);
  return {.seconds = rounds.seconds(),
          .spent = rounds.spent(),
          .messages = rounds.most_messages(),
          .all_messages = rounds.all_messages(),
          .further_chunk = rounds.further_chunk()};
}

}  // namespace tutti::plan
