#include "tutti/engine/widened.h"

#include "tutti/engine/planned.h"
#include "tutti/kernels/convert.h"
#include "tutti/kernels/reproducible.h"

namespace tutti::engine {
namespace {

using kernels::DType;
using kernels::ReduceOp;

/// Complex numbers are added part by part.
DType part_of(DType dtype) {
  return dtype == DType::complex64 ? DType::float32 : dtype == DType::complex128 ? DType::float64 : dtype;
}

}  // namespace

std::optional<DType> Widened::type_for(const Card& card) {
  const auto op = plan_op(card.op);
  if (!op || !plan::reduces(*op)) {
    return std::nullopt;
  }
  if (kernels::is_reproducible(card.reduce)) {
    return kernels::accumulator_of(card.dtype);
  }
  // The least or greatest of several is one of them: nothing is rounded.
  const bool rounds =
      kernels::is_small_float(card.dtype) && card.reduce != ReduceOp::min && card.reduce != ReduceOp::max;
  return rounds ? std::optional(DType::float32) : std::nullopt;
}

std::size_t Widened::bytes_for(const Card& card) {
  const auto type = type_for(card);
  return type ? kernels::count_of(part_of(card.dtype), card.bytes) * kernels::size_of(*type) : card.bytes;
}

const Call& Widened::begin(const Call& call) {
  const auto card = make_card(call);
  const auto type = *type_for(card);
  const auto part = part_of(call.dtype);
  const auto wide = [&](std::size_t bytes) { return kernels::count_of(part, bytes) * kernels::size_of(type); };
  const auto total = [&](const auto& blocks) {
    std::size_t bytes = 0;
    for (const auto& block : blocks) {
      bytes += wide(block.size());
    }
    return bytes;
  };
  in_.assign(total(call.in), std::byte{0});  // of accumulators: nothing added yet
  out_.resize(total(call.out));
  wide_ = {.op = call.op,
           .dtype = type,
           .reduce = kernels::is_reproducible(call.reduce) ? ReduceOp::sum : call.reduce,
           .root = call.root,
           .factor = call.factor,
           .site = call.site};
  auto* at = in_.data();
  for (const auto& block : call.in) {
    const auto* const from = block.data();
    const auto count = kernels::count_of(part, block.size());
    if (kernels::is_reproducible(call.reduce)) {
      kernels::accumulate(part, {&from, 1}, at, count);
    } else {
      kernels::to_float32(part, from, reinterpret_cast<float*>(at), count);
    }
    wide_.in.push_back({at, wide(block.size())});
    at += wide(block.size());
  }
  at = out_.data();
  for (const auto& block : call.out) {
    wide_.out.push_back({at, wide(block.size())});
    at += wide(block.size());
  }
  return wide_;
}

void Widened::finish(const Call& call, int ranks) {
  const auto part = part_of(call.dtype);
  for (std::size_t i = 0; i < call.out.size(); ++i) {
    const auto* const from = wide_.out[i].data();
    auto* const to = call.out[i].data();
    const auto count = kernels::count_of(part, call.out[i].size());
    if (kernels::is_reproducible(call.reduce)) {
      const auto divisor = call.reduce == ReduceOp::reproducible_avg ? static_cast<std::size_t>(ranks) : 1;
      kernels::round_accumulators(part, from, {&to, 1}, count, {.divisor = divisor});
    } else {
      kernels::from_float32(part, reinterpret_cast<const float*>(from), to, count);
    }
  }
}

}  // namespace tutti::engine
