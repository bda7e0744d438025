#include "tutti/plan/hybrid.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "tutti/plan/rooted.h"
#include "tutti/plan/team.h"

namespace tutti::plan {
namespace {

/// The sum of a host's part goes to its leader.
void reduce_inside(Builder& builder, const Team& host, const Request& request, Span from, Span to) {
  switch (request.inner) {
    case Algorithm::ring: ring_reduce_to_first(builder, host, from, to, request.chunks); return;
    case Algorithm::tree:
      tree_reduce(builder, host, binary_branch(host.size(), host.me), from, to, request.chunks);
      return;
    default: direct_reduce(builder, host, from, to, request.chunks); return;
  }
}

void broadcast_inside(Builder& builder, const Team& host, const Request& request, Span to) {
  switch (request.inner) {
    case Algorithm::ring: ring_broadcast_from_first(builder, host, to, request.chunks); return;
    case Algorithm::tree:
      tree_broadcast(builder, host, binary_branch(host.size(), host.me), to, request.chunks);
      return;
    default: direct_broadcast(builder, host, to, request.chunks); return;
  }
}

void all_reduce_between(Builder& builder, const Team& leaders, const Request& request, Span part) {
  switch (request.outer) {
    case Algorithm::ring: return ring_all_reduce(builder, leaders, part, part, request.chunks);
    case Algorithm::tree: return tree_all_reduce(builder, leaders, part, part, request.chunks);
    case Algorithm::double_tree: return double_tree_all_reduce(builder, leaders, part, part, request.chunks);
    case Algorithm::recursive_doubling:
      return recursive_doubling_all_reduce(builder, leaders, part, part, request.chunks);
    case Algorithm::halving_doubling: return halving_doubling_all_reduce(builder, leaders, part, part, request.chunks);
    case Algorithm::one_shot: return one_shot_all_reduce(builder, leaders, part, part, request.chunks);
    case Algorithm::direct: return two_shot_all_reduce(builder, leaders, part, part, request.chunks);
    default: require(false, "check_hybrid knows what there is between hosts");
  }
}

}  // namespace

Status check_hybrid(const Request& request) {
  std::vector<int> seen(static_cast<std::size_t>(request.ranks), 0);
  auto smallest = static_cast<std::size_t>(request.ranks);
  for (const auto& host : request.hosts) {
    smallest = std::min(smallest, host.size());
    for (const auto rank : host) {
      if (to_int(rank) < 0 || to_int(rank) >= request.ranks) {
        return Error{Code::invalid_argument,
                     fmt::format("hybrid: a host has rank {} of {}", to_int(rank), request.ranks)};
      }
      ++seen[to_index(rank)];
    }
  }
  if (std::any_of(seen.begin(), seen.end(), [](int times) { return times != 1; })) {
    return Error{Code::invalid_argument, "hybrid: every rank has to be on one host"};
  }
  if (request.leaders < 1 || request.leaders > smallest) {
    return Error{Code::invalid_argument,
                 fmt::format("hybrid: {} leaders, but the smallest host has {} ranks", request.leaders, smallest)};
  }
  const auto inner = parse_one_of(to_string(request.inner), algorithms_inside_hosts(), "hybrid: inside of a host");
  const auto outer = parse_one_of(to_string(request.outer), algorithms_between_hosts(), "hybrid: between hosts");
  return !inner ? inner.error() : !outer ? outer.error() : Status();
}

/// Each leader's part is divided as the algorithm between hosts wants it, and for a ring inside of hosts, as that does.
std::uint64_t hybrid_pieces(const Request& request) {
  constexpr auto kTooMany = std::uint64_t{1} << 32;  // for any plan; further on, multiples of multiples wrap around
  const auto outer = shape_of({.op = Op::all_reduce,
                               .algorithm = request.outer,
                               .ranks = static_cast<int>(request.hosts.size()),
                               .chunks = request.chunks});
  if (!outer) {
    return kTooMany;
  }
  auto pieces = std::lcm(std::uint64_t{outer.value().pieces}, request.chunks);
  if (request.inner == Algorithm::ring) {
    for (const auto& host : request.hosts) {
      pieces = std::min(kTooMany, std::lcm(pieces, host.size() * request.chunks));
    }
  }
  return pieces * request.leaders;
}

void hybrid_all_reduce(Builder& builder, const Request& request) {
  const auto leaders = request.leaders;
  const auto host = std::find_if(request.hosts.begin(), request.hosts.end(), [&](const auto& ranks) {
    return std::find(ranks.begin(), ranks.end(), builder.me()) != ranks.end();
  });
  const auto led_by = [&](unsigned leader) {
    auto members = *host;
    std::rotate(members.begin(), members.begin() + leader, members.end());
    return *Team::of(std::move(members), builder.me());
  };
  for (unsigned leader = 0; leader < leaders; ++leader) {
    reduce_inside(builder, led_by(leader), request, builder.input().part(leader, leaders),
                  builder.output().part(leader, leaders));
  }
  for (unsigned leader = 0; leader < leaders; ++leader) {
    std::vector<Rank> between;
    for (const auto& ranks : request.hosts) {
      between.push_back(ranks[leader]);
    }
    if (const auto team = Team::of(std::move(between), builder.me())) {
      const auto part = builder.output().part(leader, leaders);
      all_reduce_between(builder, *team, request, part);
    }
  }
  for (unsigned leader = 0; leader < leaders; ++leader) {
    broadcast_inside(builder, led_by(leader), request, builder.output().part(leader, leaders));
  }
}

}  // namespace tutti::plan
