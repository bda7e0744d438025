#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "tutti/plan/algorithms.h"

namespace tutti::plan {

/// What the literature says that an algorithm sends, in blocks, of the rank that sends most.
struct Formula {
  double sent = 0;             ///< by it to all others
  double on_a_link = 0;        ///< the most from one rank to one other
  std::uint32_t messages = 0;  ///< by the rank that sends most of them

  bool operator==(const Formula&) const = default;
};

/// Functions of numbers alone, for two ranks and more: nothing here knows how plans are built. A hybrid is one with one
/// leader per host and direct inside of hosts, of which the first is the largest.
Formula formula_of(const Request& request);

/// The same of one chunk.
inline Formula formula_of_one_chunk(const Request& request) {
  const auto count = static_cast<std::uint32_t>(request.ranks);
  const double n = count;
  const auto log2_up = static_cast<std::uint32_t>(std::bit_width(count - 1));
  const auto log2_down = static_cast<std::uint32_t>(std::bit_width(count)) - 1;
  const bool is_power = std::has_single_bit(count);
  const double active = std::bit_floor(count);  // ranks that double; the others hand over to them, and are told
  const auto half = std::bit_ceil(count) / 2;
  const double heaviest = std::max(count - half, half / 2);  // blocks below one child of a binomial root
  switch (request.algorithm) {
    case Algorithm::ring:
      return request.op == Op::all_reduce ? Formula{2 * (n - 1) / n, 2 * (n - 1) / n, 2 * (count - 1)}
                                          : Formula{n - 1, n - 1, count - 1};
    case Algorithm::tree: {
      // To two children, and to a parent: from five ranks on, somebody has all three.
      const auto peers = request.op == Op::reduce      ? 1
                         : request.op == Op::broadcast ? std::min(2U, count - 1)
                                                       : std::min(3U, (count + 1) / 2);
      return {static_cast<double>(peers), 1, peers};
    }
    case Algorithm::double_tree: {
      // Halves: three in the tree in which a rank is inside, one in that in which it is a leaf. Some are neighbours in
      // both.
      const auto halves = std::min(4U, count);
      return {halves / 2.0, 1, halves};
    }
    case Algorithm::recursive_doubling: {
      const auto steps = log2_down + (is_power ? 0 : 1);
      return {static_cast<double>(steps), 1, steps};
    }
    case Algorithm::halving_doubling:
      return {2 * (active - 1) / active + (is_power ? 0 : 1), 1, 2 * log2_down + (is_power ? 0 : 1)};
    case Algorithm::one_shot: return {n - 1, 1, count - 1};
    case Algorithm::direct:
      switch (request.op) {
        case Op::all_reduce: return {2 * (n - 1) / n, 2 / n, 2 * (count - 1)};
        case Op::reduce:
        case Op::gather: return {1, 1, 1};
        default: return {n - 1, 1, count - 1};
      }
    case Algorithm::binomial:
      switch (request.op) {
        case Op::gather: return {heaviest, heaviest, 1};
        case Op::scatter: return {n - 1, heaviest, log2_up};
        default: return {static_cast<double>(log2_up), 1, log2_up};
      }
    case Algorithm::scatter_gather:
      return request.op == Op::reduce ? Formula{1, 1, count} : Formula{2 * (n - 1) / n, 1, 2 * (count - 1)};
    case Algorithm::bruck: {
      // At each step all blocks go whose way has that bit.
      double all = 0;
      double most = 0;
      for (std::uint32_t bit = 1; bit < count; bit *= 2) {
        double going = 0;
        for (std::uint32_t way = 0; way < count; ++way) {
          going += (way & bit) != 0 ? 1 : 0;
        }
        all += going;
        most = std::max(most, going);
      }
      return {all, most, log2_up};
    }
    case Algorithm::hybrid: {
      // A leader tells the others of its host what it has from the other leaders.
      const auto others = static_cast<std::uint32_t>(request.hosts.front().size()) - 1;
      const auto between =
          formula_of_one_chunk({.algorithm = request.outer, .ranks = static_cast<int>(request.hosts.size())});
      return {between.sent + others, 1, between.messages + others};
    }
  }
  return {};
}

/// Chunks are more messages with the same bytes. What a root hands out before a ring, or gathers after it, goes in
/// slices.
inline Formula formula_of(const Request& request) {
  auto formula = formula_of_one_chunk(request);
  auto whole = 0U;
  if (request.algorithm == Algorithm::scatter_gather) {
    whole = request.op == Op::reduce ? 1 : static_cast<std::uint32_t>(request.ranks) - 1;
  }
  formula.messages = (formula.messages - whole) * request.chunks + whole;
  return formula;
}

inline constexpr std::array kEveryOp{Op::all_reduce, Op::reduce_scatter, Op::all_gather, Op::broadcast,
                                     Op::reduce,     Op::all_to_all,     Op::gather,     Op::scatter};

/// Its ranks on two hosts, the first the larger one when one is.
inline Request on_two_hosts(Request request) {
  request.hosts.assign(2, {});
  for (int rank = 0; rank < request.ranks; ++rank) {
    request.hosts[rank < (request.ranks + 1) / 2 ? 0 : 1].push_back(Rank{rank});
  }
  return request;
}

}  // namespace tutti::plan
