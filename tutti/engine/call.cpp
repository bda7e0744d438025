#include "tutti/engine/call.h"

#include <algorithm>
#include <array>
#include <functional>

#include <fmt/format.h>

#include "tutti/kernels/reproducible.h"

namespace tutti::engine {
namespace {

/// How many blocks an operation has on each side.
struct Shape {
  int in = 0;
  int out = 0;
};

constexpr int kPerRank = -1;
constexpr int kAny = -2;

Shape shape_of(Op op, bool root) {
  switch (op) {
    case Op::barrier: return {0, 0};
    case Op::all_reduce: return {1, 1};
    case Op::reduce: return {1, root ? 1 : 0};
    case Op::broadcast: return {root ? 1 : 0, root ? 0 : 1};
    case Op::all_gather: return {1, kPerRank};
    case Op::reduce_scatter: return {kPerRank, 1};
    case Op::all_to_all: return {kPerRank, kPerRank};
    case Op::gather: return {1, root ? kPerRank : 0};
    case Op::scatter: return {root ? kPerRank : 0, 1};
    case Op::round_sums: return {kAny, 1};
  }
  return {};
}

bool reduces(Op op) {
  return op == Op::all_reduce || op == Op::reduce || op == Op::reduce_scatter || op == Op::round_sums;
}

bool has_root(Op op) { return op == Op::reduce || op == Op::broadcast || op == Op::gather || op == Op::scatter; }

/// What the ranks of a group call as their operation of that number.
struct Calls {
  std::span<const CallView> views;
  std::uint64_t sequence;

  std::size_t size() const { return views.size(); }
  const CallView& operator[](std::size_t rank) const { return views[rank]; }
  Rank name(std::size_t rank) const { return views[rank].rank == Rank{-1} ? to_rank(rank) : views[rank].rank; }

  std::string describe(std::size_t rank) const {
    const auto& view = views[rank];
    return fmt::format("rank {} calls {}{}{}", to_int(name(rank)), engine::describe(view.card, sequence),
                       view.site.empty() ? "" : " at ", view.site);
  }
};

Error disagreement(const Calls& calls, std::size_t a, std::size_t b, std::string_view detail = "") {
  return {.code = Code::mismatch,
          .message = fmt::format("ranks call different things: {}, {}{}{}", calls.describe(a), calls.describe(b),
                                 detail.empty() ? "" : "; ", detail),
          .rank = calls.name(b)};
}

std::string lengths(std::size_t giver, std::uint64_t given, std::size_t taker, std::uint64_t taken) {
  return fmt::format("rank {} has {} bytes for rank {}, which expects {}", giver, given, taker, taken);
}

/// Whether what rank `giver` has for rank `taker` is what that one expects, for every pair.
Status check_pairs(const Calls& calls, const std::function<std::uint64_t(std::size_t giver, std::size_t taker)>& given,
                   const std::function<std::uint64_t(std::size_t giver, std::size_t taker)>& taken) {
  for (std::size_t giver = 0; giver < calls.size(); ++giver) {
    for (std::size_t taker = 0; taker < calls.size(); ++taker) {
      if (given(giver, taker) != taken(giver, taker) && giver == taker) {
        return Error{Code::mismatch,
                     fmt::format("{}, with {} bytes for itself where it expects {}", calls.describe(giver),
                                 given(giver, giver), taken(giver, giver)),
                     to_rank(giver)};
      }
      if (given(giver, taker) != taken(giver, taker)) {
        return disagreement(calls, giver, taker, lengths(giver, given(giver, taker), taker, taken(giver, taker)));
      }
    }
  }
  return {};
}

Status check_lengths(const Calls& calls) {
  const auto root = to_index(calls[0].card.root);
  const auto bytes = [&](std::size_t rank) { return calls[rank].card.bytes; };
  switch (calls[0].card.op) {
    case Op::barrier: return {};
    case Op::all_reduce:
    case Op::reduce:
    case Op::broadcast:
    case Op::round_sums:
      for (std::size_t rank = 1; rank < calls.size(); ++rank) {
        if (bytes(rank) != bytes(0)) {
          return disagreement(calls, 0, rank);
        }
      }
      return {};
    case Op::all_gather:
      return check_pairs(
          calls, [&](std::size_t giver, std::size_t) { return bytes(giver); },
          [&](std::size_t giver, std::size_t taker) { return calls[taker].out_bytes[giver]; });
    case Op::reduce_scatter:
      return check_pairs(
          calls, [&](std::size_t giver, std::size_t taker) { return calls[giver].in_bytes[taker]; },
          [&](std::size_t, std::size_t taker) { return bytes(taker); });
    case Op::all_to_all:
      return check_pairs(
          calls, [&](std::size_t giver, std::size_t taker) { return calls[giver].in_bytes[taker]; },
          [&](std::size_t giver, std::size_t taker) { return calls[taker].out_bytes[giver]; });
    case Op::gather:
      return check_pairs(
          calls, [&](std::size_t giver, std::size_t taker) { return taker == root ? bytes(giver) : 0; },
          [&](std::size_t giver, std::size_t taker) { return taker == root ? calls[root].out_bytes[giver] : 0; });
    case Op::scatter:
      return check_pairs(
          calls, [&](std::size_t giver, std::size_t taker) { return giver == root ? calls[root].in_bytes[taker] : 0; },
          [&](std::size_t giver, std::size_t taker) { return giver == root ? bytes(taker) : 0; });
  }
  return {};
}

/// Inputs are read by peers, who must be able to find them; outputs only by their own rank.
bool is_plain(const Call& call, std::size_t bytes) {
  for (std::size_t i = 0; i < call.in.size(); ++i) {
    if (call.in[i].size() != bytes || call.in[i].data() != call.in[0].data() + i * bytes) {
      return false;
    }
  }
  return std::all_of(call.out.begin(), call.out.end(), [&](Block block) { return block.size() == bytes; });
}

/// Of round_sums, whose blocks are whole.
Status check_sums(const Call& call) {
  const auto wrong = [](std::string message) {
    return Error{Code::invalid_argument, fmt::format("round_sums: {}", message)};
  };
  if (call.reduce != kernels::ReduceOp::reproducible_avg || call.dtype > kernels::DType::float8_e5m2) {
    return wrong(fmt::format("{} of {} was asked for, and only reproducible_avg of floats can be",
                             to_string(call.reduce), to_string(call.dtype)));
  }
  if (call.divisor < 1 || call.divisor > kernels::kMostDivisor) {
    return wrong(fmt::format("divisor {}; it is between 1 and {}", call.divisor, kernels::kMostDivisor));
  }
  if (call.ends_with_sums && call.in.empty()) {
    return wrong("there are no accumulators, though it says so");
  }
  const auto addends = whole_addends(call);
  if (addends > kMostWholeAddends) {
    return wrong(fmt::format("{} addends; at most {} are added up as they are", addends, kMostWholeAddends));
  }
  const auto bytes = call.out[0].size();
  const auto elements = kernels::count_of(call.dtype, bytes);
  for (std::size_t i = 0; i < call.in.size(); ++i) {
    const auto expected = i < addends ? bytes : elements * kernels::size_of(kernels::accumulator_of(call.dtype));
    if (call.in[i].size() != expected) {
      return wrong(fmt::format("input {} has {} bytes instead of {}", i, call.in[i].size(), expected));
    }
  }
  return {};
}

}  // namespace

Status check_call(const Call& call, Rank rank, int ranks) {
  const auto wrong = [&](std::string message) {
    return Error{Code::invalid_argument, fmt::format("{}: {}", to_string(call.op), message)};
  };
  if (has_root(call.op) && (to_int(call.root) < 0 || to_int(call.root) >= ranks)) {
    return wrong(fmt::format("root {} is not a rank of the group, which has {}", to_int(call.root), ranks));
  }
  if (reduces(call.op)) {
    if (auto possible = kernels::can_reduce(call.reduce, call.dtype); !possible) {
      return possible;
    }
  }
  const auto shape = shape_of(call.op, rank == call.root);
  const auto count = [&](int blocks) {
    return blocks == kAny ? call.in.size() : static_cast<std::size_t>(blocks == kPerRank ? ranks : blocks);
  };
  if (call.in.size() != count(shape.in) || call.out.size() != count(shape.out)) {
    return wrong(fmt::format("{} inputs and {} outputs given; rank {} of {} needs {} and {}", call.in.size(),
                             call.out.size(), to_int(rank), ranks, count(shape.in), count(shape.out)));
  }
  const auto whole = [&](std::size_t bytes) { return kernels::is_whole(call.dtype, bytes); };
  if (!std::all_of(call.in.begin(), call.in.end(), [&](ConstBlock block) { return whole(block.size()); }) ||
      !std::all_of(call.out.begin(), call.out.end(), [&](Block block) { return whole(block.size()); })) {
    return wrong(fmt::format("a block is no whole number of {} elements", kernels::to_string(call.dtype)));
  }
  if ((call.op == Op::all_reduce || (call.op == Op::reduce && rank == call.root)) &&
      call.in[0].size() != call.out[0].size()) {
    return wrong("input and output have different lengths");
  }
  return call.op == Op::round_sums ? check_sums(call) : Status();
}

Card make_card(const Call& call) {
  Card card{.op = call.op, .dtype = call.dtype};
  card.reduce = reduces(call.op) ? call.reduce : kernels::ReduceOp::sum;
  card.root = has_root(call.op) ? call.root : Rank{0};
  if (call.op == Op::barrier) {
    return card;
  }
  // The one block: the output where inputs are one per rank, or any number, else the input, else (broadcast) the
  // output.
  const bool out_first =
      call.op == Op::reduce_scatter || call.op == Op::scatter || call.op == Op::round_sums || call.in.empty();
  card.bytes = out_first ? call.out[0].size() : call.in[0].size();
  card.plain = call.op == Op::round_sums || is_plain(call, card.bytes);
  return card;
}

std::size_t bytes_at_work(const Card& card) {
  if (card.op != Op::round_sums) {
    return card.bytes;
  }
  const auto elements = kernels::count_of(card.dtype, card.bytes);
  return kMostWholeAddends * card.bytes + elements * kernels::size_of(kernels::accumulator_of(card.dtype));
}

Error differing_marks(const std::string& doing, Op op, const Marked& first, const Marked& second) {
  if (op == Op::round_sums) {
    return {Code::mismatch,
            fmt::format("{}: rank {} divides by {}, and rank {} by {}", doing, to_int(first.rank), first.mark,
                        to_int(second.rank), second.mark),
            second.rank};
  }
  return {Code::mismatch,
          fmt::format("{}: rank {} runs it by another plan than rank {}: choose the same one on all ranks", doing,
                      to_int(second.rank), to_int(first.rank)),
          second.rank};
}

std::string describe(const Card& card, std::uint64_t sequence) {
  std::string text = fmt::format("{} #{}", to_string(card.op), sequence);
  if (card.op == Op::barrier) {
    return text;
  }
  text += " (";
  if (reduces(card.op)) {
    text += fmt::format("{}, ", kernels::to_string(card.reduce));
  }
  text += kernels::to_string(card.dtype);
  if (card.op != Op::all_to_all || card.plain) {
    text += fmt::format(", {} elements", kernels::count_of(card.dtype, card.bytes));
  }
  if (has_root(card.op)) {
    text += fmt::format(", root {}", to_int(card.root));
  }
  return text + ")";
}

Status check_agreement(std::span<const CallView> views, std::uint64_t sequence) {
  const Calls calls{views, sequence};
  const auto& first = calls[0].card;
  for (std::size_t rank = 1; rank < calls.size(); ++rank) {
    const auto& card = calls[rank].card;
    if (card.op != first.op || card.dtype != first.dtype || card.reduce != first.reduce || card.root != first.root) {
      return disagreement(calls, 0, rank);
    }
  }
  return check_lengths(calls);
}

}  // namespace tutti::engine
