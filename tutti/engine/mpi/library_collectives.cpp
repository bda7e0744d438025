#include "tutti/engine/mpi/library_collectives.h"

#include <cstring>
#include <optional>

#include "tutti/engine/mpi/poll.h"

namespace tutti::engine::mpi {
namespace {

using kernels::DType;
using kernels::ReduceOp;

std::optional<Element> element_of(DType dtype) {
  switch (dtype) {
    case DType::int8: return Element::int8;
    case DType::uint8: return Element::uint8;
    case DType::int16: return Element::int16;
    case DType::uint16: return Element::uint16;
    case DType::int32: return Element::int32;
    case DType::uint32: return Element::uint32;
    case DType::int64: return Element::int64;
    case DType::uint64: return Element::uint64;
    case DType::float32: return Element::float32;
    case DType::float64: return Element::float64;
    default: return std::nullopt;
  }
}

/// An average is a sum, divided by whoever asked.
std::optional<Reducer> reducer_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::avg: return Reducer::sum;
    case ReduceOp::product: return Reducer::product;
    case ReduceOp::min: return Reducer::min;
    case ReduceOp::max: return Reducer::max;
    case ReduceOp::band: return Reducer::bit_and;
    case ReduceOp::bor: return Reducer::bit_or;
    case ReduceOp::bxor: return Reducer::bit_xor;
    default: return std::nullopt;
  }
}

}  // namespace

LibraryCollectives::LibraryCollectives(const Wires& wires)
    : wires_(wires), requests_(wires.library->api().make_requests()) {
  for (int rank = 0; rank < wires_.members.ranks(); ++rank) {
    if (Rank{rank} != wires_.me) {
      others_.push_back(Rank{rank});
    }
  }
}

bool LibraryCollectives::has(Op op) {
  return op == Op::all_reduce || op == Op::broadcast || op == Op::all_gather || op == Op::all_to_all;
}

bool LibraryCollectives::can(const Call& call, const Card& card) {
  if (!card.plain || card.bytes == 0) {
    return false;
  }
  switch (card.op) {
    case Op::all_reduce: return element_of(card.dtype) && reducer_of(card.reduce);
    case Op::broadcast: return true;
    case Op::all_gather:
    case Op::all_to_all: {
      if (card.bytes > Requests::kLongest) {
        return false;
      }
      for (std::size_t i = 0; i < call.out.size(); ++i) {
        if (call.out[i].data() != call.out[0].data() + i * card.bytes) {
          return false;
        }
      }
      return true;
    }
    default: return false;
  }
}

int LibraryCollectives::begin(const Call& call, const Card& card) {
  const auto where = wires_.communicator;
  switch (card.op) {
    case Op::all_reduce:
      return requests_->all_reduce(where, call.in[0].data(), call.out[0].data(),
                                   kernels::count_of(card.dtype, card.bytes), *element_of(card.dtype),
                                   *reducer_of(card.reduce), 0);
    case Op::broadcast: {
      auto* data = call.out.empty() ? const_cast<std::byte*>(call.in[0].data()) : call.out[0].data();
      return requests_->broadcast(where, data, card.bytes, to_int(card.root), 0);
    }
    case Op::all_gather: return requests_->all_gather(where, call.in[0].data(), call.out[0].data(), card.bytes, 0);
    default: return requests_->all_to_all(where, call.in[0].data(), call.out[0].data(), card.bytes, 0);
  }
}

Status LibraryCollectives::run(const Call& call, const Doing& doing, Deadline deadline) {
  const int error = wires_.library->call([&] { return begin(call, doing.card); });
  if (auto status = finish_all(wires_.hub, *wires_.library, *requests_, error, others_, doing, deadline); !status) {
    wires_.library->drop(*requests_);
    return status;
  }
  if (doing.card.op == Op::all_reduce && call.reduce == ReduceOp::avg) {
    const std::byte* const from = call.out[0].data();
    std::byte* const to = call.out[0].data();
    kernels::reduce(
        {.op = ReduceOp::avg, .dtype = call.dtype, .divisor = static_cast<std::size_t>(wires_.members.ranks())},
        {&from, 1}, {&to, 1}, kernels::count_of(call.dtype, call.out[0].size()));
  }
  return {};
}

}  // namespace tutti::engine::mpi
