#include "tutti/plan/algorithms.h"

#include <algorithm>
#include <array>
#include <bit>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tutti/plan/hybrid.h"
#include "tutti/plan/rooted.h"
#include "tutti/plan/team.h"

namespace tutti::plan {
namespace {

/// A way to do an operation: into how many pieces a block is divided, and the steps.
struct Way {
  Algorithm algorithm;
  Op op;
  std::uint64_t (*pieces)(const Request&);
  void (*write)(Builder&, const Request&);
};

std::uint64_t ranks_of(const Request& request) { return static_cast<std::uint64_t>(request.ranks); }
std::uint64_t one(const Request&) { return 1; }
std::uint64_t by_chunks(const Request& request) { return request.chunks; }
std::uint64_t by_two_chunks(const Request& request) { return std::uint64_t{2} * request.chunks; }
std::uint64_t by_ranks_and_chunks(const Request& request) { return ranks_of(request) * request.chunks; }
std::uint64_t by_power_of_two_and_chunks(const Request& request) {
  return std::bit_floor(ranks_of(request)) * request.chunks;
}

Team everybody(const Builder& builder) { return Team::of_all(builder.shape().ranks, builder.me()); }
Team in_order(const Builder& builder, const Request& request) {
  return request.order.empty() ? everybody(builder) : *Team::of(request.order, builder.me());
}
Team from_root(const Builder& builder) {
  return Team::of_all(builder.shape().ranks, builder.me(), builder.shape().root);
}

using AllReduce = void (*)(Builder&, const Team&, Span, Span, unsigned);

template <AllReduce kAllReduce>
void all_reduce(Builder& builder, const Request& request) {
  kAllReduce(builder, in_order(builder, request), builder.input(), builder.output(), request.chunks);
}

/// The block of each member.
Slices blocks(const Builder& builder, const Team& team, Buffer buffer) {
  return [pieces = builder.shape().pieces, &team, buffer](std::size_t place) {
    return Span{buffer, static_cast<std::uint32_t>(to_index(team.at(place))) * pieces, pieces};
  };
}

/// Sums on their way lie in memory of the runner's, the last in the output.
template <class Movement>
void reduce_scatter(Builder& builder, const Request& request, const Movement& movement) {
  const auto team = in_order(builder, request);
  const auto partial = builder.scratch(builder.shape().pieces * static_cast<std::uint32_t>(builder.shape().ranks));
  movement(team, blocks(builder, team, Buffer::input),
           [&](std::size_t place) { return place == team.me ? builder.output() : partial.part(place, team.size()); });
}

void write_ring_reduce_scatter(Builder& builder, const Request& request) {
  reduce_scatter(builder, request, [&](const Team& team, const Slices& from, const Slices& to) {
    ring_reduce_scatter(builder, team, from, to, request.chunks);
  });
}

void write_direct_reduce_scatter(Builder& builder, const Request& request) {
  const auto team = in_order(builder, request);
  direct_reduce_scatter(
      builder, team, blocks(builder, team, Buffer::input), [&](std::size_t) { return builder.output(); },
      request.chunks);
}

void write_ring_all_gather(Builder& builder, const Request& request) {
  const auto team = in_order(builder, request);
  builder.copy(builder.output(to_index(builder.me())), builder.input());
  ring_all_gather(builder, team, blocks(builder, team, Buffer::output), request.chunks);
}

void write_direct_all_gather(Builder& builder, const Request& request) {
  const auto team = in_order(builder, request);
  builder.copy(builder.output(to_index(builder.me())), builder.input());
  direct_all_gather(builder, team, blocks(builder, team, Buffer::output), request.chunks);
}

void write_direct_all_to_all(Builder& builder, const Request& request) {
  const auto team = everybody(builder);
  const auto n = team.size();
  builder.copy(builder.output(team.me), builder.input(team.me));
  for (unsigned c = 0; c < request.chunks; ++c) {
    for (std::size_t i = 1; i < n; ++i) {
      const auto place = (team.me + i) % n;
      builder.send(team.at(place), builder.input(place).part(c, request.chunks));
    }
    for (std::size_t i = 1; i < n; ++i) {
      const auto place = (team.me + n - i) % n;
      builder.receive(team.at(place), builder.output(place).part(c, request.chunks));
    }
  }
}

/// Block j is to go j ranks further. At each step those blocks whose way has that bit go that far, side by side.
void write_bruck_all_to_all(Builder& builder, const Request&) {
  const auto team = everybody(builder);
  const auto n = team.size();
  const auto pieces = builder.shape().pieces;
  const auto held = builder.scratch(pieces * static_cast<std::uint32_t>(n));
  for (std::size_t way = 0; way < n; ++way) {
    builder.copy(held.part(way, n), builder.input((team.me + way) % n));
  }
  for (std::size_t bit = 1; bit < n; bit *= 2) {
    std::vector<std::size_t> going;
    for (std::size_t way = 0; way < n; ++way) {
      if ((way & bit) != 0) {
        going.push_back(way);
      }
    }
    const auto packed = builder.scratch(pieces * static_cast<std::uint32_t>(going.size()));
    const auto incoming = builder.scratch(packed.count);
    for (std::size_t i = 0; i < going.size(); ++i) {
      builder.copy(packed.part(i, going.size()), held.part(going[i], n));
    }
    builder.send(team.at(team.me + bit), packed);
    builder.receive(team.at(team.me + n - bit), incoming, {Buffer::input, 0, incoming.count});
    for (std::size_t i = 0; i < going.size(); ++i) {
      builder.copy(held.part(going[i], n), incoming.part(i, going.size()));
    }
  }
  for (std::size_t way = 0; way < n; ++way) {
    builder.copy(builder.output((team.me + n - way) % n), held.part(way, n));
  }
}

constexpr std::array kWays{
    Way{Algorithm::ring, Op::all_reduce, by_ranks_and_chunks, all_reduce<ring_all_reduce>},
    Way{Algorithm::tree, Op::all_reduce, by_chunks, all_reduce<tree_all_reduce>},
    Way{Algorithm::double_tree, Op::all_reduce, by_two_chunks, all_reduce<double_tree_all_reduce>},
    Way{Algorithm::recursive_doubling, Op::all_reduce, by_chunks, all_reduce<recursive_doubling_all_reduce>},
    Way{Algorithm::halving_doubling, Op::all_reduce, by_power_of_two_and_chunks,
        all_reduce<halving_doubling_all_reduce>},
    Way{Algorithm::one_shot, Op::all_reduce, by_chunks, all_reduce<one_shot_all_reduce>},
    Way{Algorithm::direct, Op::all_reduce, by_ranks_and_chunks, all_reduce<two_shot_all_reduce>},
    Way{Algorithm::hybrid, Op::all_reduce, hybrid_pieces, hybrid_all_reduce},
    Way{Algorithm::ring, Op::reduce_scatter, by_chunks, write_ring_reduce_scatter},
    Way{Algorithm::direct, Op::reduce_scatter, by_chunks, write_direct_reduce_scatter},
    Way{Algorithm::ring, Op::all_gather, by_chunks, write_ring_all_gather},
    Way{Algorithm::direct, Op::all_gather, by_chunks, write_direct_all_gather},
    Way{Algorithm::direct, Op::all_to_all, by_chunks, write_direct_all_to_all},
    Way{Algorithm::bruck, Op::all_to_all, one, write_bruck_all_to_all},
    Way{Algorithm::tree, Op::broadcast, by_chunks,
        [](Builder& builder, const Request& request) { tree_broadcast(builder, from_root(builder), request.chunks); }},
    Way{Algorithm::binomial, Op::broadcast, by_chunks,
        [](Builder& builder, const Request& request) {
          binomial_broadcast(builder, from_root(builder), request.chunks);
        }},
    Way{Algorithm::direct, Op::broadcast, by_chunks,
        [](Builder& builder, const Request& request) {
          direct_broadcast(builder, from_root(builder), request.chunks);
        }},
    Way{Algorithm::scatter_gather, Op::broadcast, by_ranks_and_chunks,
        [](Builder& builder, const Request& request) {
          scatter_gather_broadcast(builder, from_root(builder), request.chunks);
        }},
    Way{Algorithm::tree, Op::reduce, by_chunks,
        [](Builder& builder, const Request& request) { tree_reduce(builder, from_root(builder), request.chunks); }},
    Way{Algorithm::direct, Op::reduce, by_chunks,
        [](Builder& builder, const Request& request) { direct_reduce(builder, from_root(builder), request.chunks); }},
    Way{Algorithm::scatter_gather, Op::reduce, by_ranks_and_chunks,
        [](Builder& builder, const Request& request) {
          scatter_gather_reduce(builder, from_root(builder), request.chunks);
        }},
    Way{Algorithm::direct, Op::gather, by_chunks,
        [](Builder& builder, const Request& request) { direct_gather(builder, from_root(builder), request.chunks); }},
    Way{Algorithm::binomial, Op::gather, one,
        [](Builder& builder, const Request&) { binomial_gather(builder, from_root(builder)); }},
    Way{Algorithm::direct, Op::scatter, by_chunks,
        [](Builder& builder, const Request& request) { direct_scatter(builder, from_root(builder), request.chunks); }},
    Way{Algorithm::binomial, Op::scatter, one,
        [](Builder& builder, const Request&) { binomial_scatter(builder, from_root(builder)); }},
};

const Way* find_way(Algorithm algorithm, Op op) {
  const auto found = std::find_if(kWays.begin(), kWays.end(),
                                  [&](const Way& way) { return way.algorithm == algorithm && way.op == op; });
  return found == kWays.end() ? nullptr : &*found;
}

constexpr std::array<std::pair<Algorithm, std::string_view>, 11> kNames{{
    {Algorithm::ring, "ring"},
    {Algorithm::tree, "tree"},
    {Algorithm::double_tree, "double_tree"},
    {Algorithm::recursive_doubling, "recursive_doubling"},
    {Algorithm::halving_doubling, "halving_doubling"},
    {Algorithm::one_shot, "one_shot"},
    {Algorithm::direct, "direct"},
    {Algorithm::binomial, "binomial"},
    {Algorithm::scatter_gather, "scatter_gather"},
    {Algorithm::bruck, "bruck"},
    {Algorithm::hybrid, "hybrid"},
}};

Status check_order(const Request& request) {
  if (request.order.empty()) {
    return {};
  }
  std::vector<int> seen(static_cast<std::size_t>(request.ranks), 0);
  for (const auto rank : request.order) {
    if (to_int(rank) < 0 || to_int(rank) >= request.ranks || ++seen[to_index(rank)] != 1) {
      return Error{Code::invalid_argument, fmt::format("an order has every rank once, not rank {}", to_int(rank))};
    }
  }
  if (request.order.size() != seen.size()) {
    return Error{Code::invalid_argument,
                 fmt::format("an order of {} ranks for {}", request.order.size(), request.ranks)};
  }
  return {};
}

}  // namespace

std::string_view to_string(Algorithm algorithm) { return kNames[static_cast<std::size_t>(algorithm)].second; }

Result<Algorithm> parse_algorithm(std::string_view text) {
  std::vector<std::string_view> names;
  for (const auto& [algorithm, name] : kNames) {
    if (name == text) {
      return algorithm;
    }
    names.push_back(name);
  }
  return Error{Code::invalid_argument, fmt::format("no algorithm '{}'; there are {}", text, fmt::join(names, ", "))};
}

Result<Algorithm> parse_one_of(std::string_view name, const std::vector<Algorithm>& these, std::string_view where) {
  std::vector<std::string_view> names;
  for (const auto algorithm : these) {
    if (to_string(algorithm) == name) {
      return algorithm;
    }
    names.push_back(to_string(algorithm));
  }
  return Error{Code::invalid_argument, fmt::format("{} there are {}, not {}", where, fmt::join(names, ", "), name)};
}

bool can(Algorithm algorithm, Op op) { return find_way(algorithm, op) != nullptr; }

std::vector<Algorithm> algorithms_inside_hosts() { return {Algorithm::direct, Algorithm::ring, Algorithm::tree}; }

std::vector<Algorithm> algorithms_between_hosts() {
  auto algorithms = algorithms_for(Op::all_reduce);
  std::erase(algorithms, Algorithm::hybrid);
  return algorithms;
}

bool takes_chunks(Algorithm algorithm, Op op) {
  const auto* const way = find_way(algorithm, op);
  return way != nullptr && way->pieces != one;
}

std::vector<Algorithm> algorithms_for(Op op) {
  std::vector<Algorithm> algorithms;
  for (const auto& way : kWays) {
    if (way.op == op) {
      algorithms.push_back(way.algorithm);
    }
  }
  return algorithms;
}

Status check(const Request& request) {
  if (request.ranks < 1) {
    return Error{Code::invalid_argument, fmt::format("a plan for {} ranks", request.ranks)};
  }
  if (to_int(request.root) < 0 || to_int(request.root) >= request.ranks) {
    return Error{Code::invalid_argument, fmt::format("root {} of {} ranks", to_int(request.root), request.ranks)};
  }
  if (request.chunks < 1 || request.chunks > kMostChunks) {
    return Error{Code::invalid_argument,
                 fmt::format("{} chunks; a plan has at least one chunk, and {} at most", request.chunks, kMostChunks)};
  }
  if (!can(request.algorithm, request.op)) {
    std::vector<std::string_view> names;
    for (const auto algorithm : algorithms_for(request.op)) {
      names.push_back(to_string(algorithm));
    }
    return Error{Code::invalid_argument, fmt::format("no {} for {}; there are {}", to_string(request.algorithm),
                                                     to_string(request.op), fmt::join(names, ", "))};
  }
  if (request.chunks > 1 && !takes_chunks(request.algorithm, request.op)) {
    return Error{Code::invalid_argument,
                 fmt::format("{} for {} is not divided into chunks: its messages are of several blocks",
                             to_string(request.algorithm), to_string(request.op))};
  }
  if (auto ordered = check_order(request); !ordered) {
    return ordered;
  }
  if (auto good = request.algorithm == Algorithm::hybrid ? check_hybrid(request) : Status{}; !good) {
    return good;
  }
  // Buffers have up to as many blocks as there are ranks, and scratch a few times that.
  constexpr auto kMostPieces = std::uint64_t{1} << 28;
  const auto pieces = find_way(request.algorithm, request.op)->pieces(request);
  const bool blocks = request.op != Op::all_reduce && request.op != Op::reduce && request.op != Op::broadcast;
  if (pieces > kMostPieces / (blocks ? ranks_of(request) : 1)) {
    return Error{Code::invalid_argument,
                 fmt::format("{} for {} of {} ranks: a block in {} pieces is more than plans can have: fewer ranks or "
                             "chunks",
                             to_string(request.algorithm), to_string(request.op), request.ranks, pieces)};
  }
  return {};
}

Result<Shape> shape_of(const Request& request) {
  if (auto good = check(request); !good) {
    return good.error();
  }
  return Shape{.op = request.op,
               .ranks = request.ranks,
               .root = request.root,
               .pieces = static_cast<std::uint32_t>(find_way(request.algorithm, request.op)->pieces(request))};
}

Result<Program> build(const Request& request, Rank rank) {
  const auto shape = shape_of(request);
  if (!shape) {
    return shape.error();
  }
  Builder builder(shape.value(), rank);
  find_way(request.algorithm, request.op)->write(builder, request);
  return std::move(builder).take();
}

Result<Plan> build(const Request& request) {
  const auto shape = shape_of(request);
  if (!shape) {
    return shape.error();
  }
  Plan plan{.shape = shape.value(), .programs = {}};
  for (int rank = 0; rank < request.ranks; ++rank) {
    plan.programs.push_back(build(request, Rank{rank}).value());
  }
  return plan;
}

}  // namespace tutti::plan
