#include "tutti/engine/widened.h"

#include "tutti/engine/planned.h"
#include "tutti/kernels/convert.h"

namespace tutti::engine {
namespace {

template <class Blocks>
std::size_t elements(const Call& call, const Blocks& blocks) {
  std::size_t count = 0;
  for (const auto& block : blocks) {
    count += kernels::count_of(call.dtype, block.size());
  }
  return count;
}

}  // namespace

bool Widened::is_needed(const Call& call) {
  const auto op = plan_op(call.op);
  // The least or greatest of several is one of them: nothing is rounded.
  return op && plan::reduces(*op) && kernels::is_small_float(call.dtype) && call.reduce != kernels::ReduceOp::min &&
         call.reduce != kernels::ReduceOp::max;
}

const Call& Widened::begin(const Call& call) {
  in_.resize(elements(call, call.in));
  out_.resize(elements(call, call.out));
  wide_ = {.op = call.op,
           .dtype = kernels::DType::float32,
           .reduce = call.reduce,
           .root = call.root,
           .factor = call.factor,
           .site = call.site};
  auto* in = in_.data();
  for (const auto& block : call.in) {
    const auto count = kernels::count_of(call.dtype, block.size());
    kernels::to_float32(call.dtype, block.data(), in, count);
    wide_.in.push_back({reinterpret_cast<std::byte*>(in), count * sizeof(float)});
    in += count;
  }
  auto* out = out_.data();
  for (const auto& block : call.out) {
    const auto count = kernels::count_of(call.dtype, block.size());
    wide_.out.push_back({reinterpret_cast<std::byte*>(out), count * sizeof(float)});
    out += count;
  }
  return wide_;
}

void Widened::finish(const Call& call) {
  const auto* out = out_.data();
  for (const auto& block : call.out) {
    const auto count = kernels::count_of(call.dtype, block.size());
    kernels::from_float32(call.dtype, out, block.data(), count);
    out += count;
  }
}

}  // namespace tutti::engine
