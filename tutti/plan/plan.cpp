#include "tutti/plan/plan.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tutti::plan {
namespace {

constexpr std::array<std::pair<Op, std::string_view>, 8> kOps{{{Op::all_reduce, "all_reduce"},
                                                               {Op::reduce_scatter, "reduce_scatter"},
                                                               {Op::all_gather, "all_gather"},
                                                               {Op::broadcast, "broadcast"},
                                                               {Op::reduce, "reduce"},
                                                               {Op::all_to_all, "all_to_all"},
                                                               {Op::gather, "gather"},
                                                               {Op::scatter, "scatter"}}};

}  // namespace

std::string_view to_string(Op op) { return kOps[static_cast<std::size_t>(op)].second; }

Result<Op> parse_op(std::string_view text) {
  std::vector<std::string_view> names;
  for (const auto& [op, name] : kOps) {
    if (name == text) {
      return op;
    }
    names.push_back(name);
  }
  return Error{Code::invalid_argument, fmt::format("no operation '{}'; there are {}", text, fmt::join(names, ", "))};
}

bool reduces(Op op) { return op == Op::all_reduce || op == Op::reduce_scatter || op == Op::reduce; }

bool has_root(Op op) { return op == Op::broadcast || op == Op::reduce || op == Op::gather || op == Op::scatter; }

std::string_view to_string(Buffer buffer) {
  return buffer == Buffer::input ? "input" : buffer == Buffer::output ? "output" : "scratch";
}

std::uint32_t Shape::input_blocks(Rank rank) const {
  switch (op) {
    case Op::reduce_scatter:
    case Op::all_to_all: return static_cast<std::uint32_t>(ranks);
    case Op::scatter: return rank == root ? static_cast<std::uint32_t>(ranks) : 0;
    case Op::broadcast: return rank == root ? 1 : 0;
    default: return 1;
  }
}

std::uint32_t Shape::output_blocks(Rank rank) const {
  switch (op) {
    case Op::all_gather:
    case Op::all_to_all: return static_cast<std::uint32_t>(ranks);
    case Op::gather: return rank == root ? static_cast<std::uint32_t>(ranks) : 0;
    case Op::reduce: return rank == root ? 1 : 0;
    default: return 1;
  }
}

Span Span::part(std::size_t index, std::size_t parts) const {
  require(parts > 0 && count % parts == 0 && index < parts, "a span is divided into equal parts");
  const auto each = static_cast<std::uint32_t>(count / parts);
  return {buffer, begin + static_cast<std::uint32_t>(index) * each, each};
}

std::uint32_t Plan::pieces_of(Rank rank, Buffer buffer) const {
  switch (buffer) {
    case Buffer::input: return shape.input_blocks(rank) * shape.pieces;
    case Buffer::output: return shape.output_blocks(rank) * shape.pieces;
    case Buffer::scratch: break;
  }
  return programs[to_index(rank)].scratch_pieces;
}

Span in_place(const Shape& shape, Rank rank, Span span) {
  const auto own = static_cast<std::uint32_t>(to_index(rank)) * shape.pieces;
  switch (shape.op) {
    case Op::all_reduce:
    case Op::reduce:
    case Op::broadcast:
      if (span.buffer == Buffer::input && shape.output_blocks(rank) > 0) {
        span.buffer = Buffer::output;
      }
      break;
    case Op::all_gather:
    case Op::gather:
      if (span.buffer == Buffer::input && (shape.op == Op::all_gather || rank == shape.root)) {
        span = {Buffer::output, span.begin + own, span.count};
      }
      break;
    case Op::reduce_scatter:
    case Op::scatter:
      if (span.buffer == Buffer::output && (shape.op == Op::reduce_scatter || rank == shape.root)) {
        span = {Buffer::input, span.begin + own, span.count};
      }
      break;
    case Op::all_to_all: break;
  }
  return span;
}

}  // namespace tutti::plan
