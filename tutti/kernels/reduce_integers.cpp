#include <concepts>
#include <cstdint>
#include <type_traits>

#include "tutti/kernels/families.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tutti/kernels/reduce_integers.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "tutti/kernels/operations-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tutti::kernels::HWY_NAMESPACE {

template <std::integral T>
void reduce_integer(const Reduction& reduction, const Buffers& buffers) {
  // Wrapping around is the same for signed and unsigned.
  using Wrapping = Direct<std::make_unsigned_t<T>>;
  switch (reduction.op) {
    case ReduceOp::sum: return reduce_with<Wrapping>(Sum(), buffers);
    case ReduceOp::product: return reduce_with<Wrapping>(Product(), buffers);
    case ReduceOp::min: return reduce_with<Direct<T>>(Least(), buffers);
    case ReduceOp::max: return reduce_with<Direct<T>>(Greatest(), buffers);
    default: return;  // can_reduce lets nobody come here
  }
}

void reduce_integers(const Reduction& reduction, const Buffers& buffers) {
  switch (reduction.dtype) {
    case DType::int64: return reduce_integer<std::int64_t>(reduction, buffers);
    case DType::int32: return reduce_integer<std::int32_t>(reduction, buffers);
    case DType::int16: return reduce_integer<std::int16_t>(reduction, buffers);
    case DType::int8: return reduce_integer<std::int8_t>(reduction, buffers);
    case DType::uint64: return reduce_integer<std::uint64_t>(reduction, buffers);
    case DType::uint32: return reduce_integer<std::uint32_t>(reduction, buffers);
    case DType::uint16: return reduce_integer<std::uint16_t>(reduction, buffers);
    case DType::uint8: return reduce_integer<std::uint8_t>(reduction, buffers);
    default: return;  // no integer
  }
}

}  // namespace tutti::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tutti::kernels {
namespace {
HWY_EXPORT(reduce_integers);
}  // namespace

void reduce_integers(const Reduction& reduction, const Buffers& buffers) {
  HWY_DYNAMIC_DISPATCH(reduce_integers)(reduction, buffers);
}

}  // namespace tutti::kernels
#endif
