#include <cstddef>
#include <cstdint>

#include "tutti/kernels/families.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tutti/kernels/reduce_bits.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "tutti/kernels/operations-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tutti::kernels::HWY_NAMESPACE {

using Bytes = Direct<std::uint8_t>;

struct And : PlainOperation {
  template <class V>
  HWY_INLINE V combine(V a, V b) const {
    return hn::And(a, b);
  }
};

struct Or : PlainOperation {
  template <class V>
  HWY_INLINE V combine(V a, V b) const {
    return hn::Or(a, b);
  }
};

struct Xor : PlainOperation {
  template <class V>
  HWY_INLINE V combine(V a, V b) const {
    return hn::Xor(a, b);
  }
};

/// Anything but zero reads as true, and true is written as one.
template <class V>
HWY_INLINE V truth(V v) {
  return hn::Min(v, hn::Set(hn::DFromV<V>(), 1));
}

struct Any : Or {
  template <class V>
  HWY_INLINE V finish(V v) const {
    return truth(v);
  }
};

struct All : PlainOperation {
  template <class V>
  HWY_INLINE V combine(V a, V b) const {
    return hn::Min(a, b);
  }
  template <class V>
  HWY_INLINE V finish(V v) const {
    return truth(v);
  }
};

struct Odd : Xor {
  template <class V>
  HWY_INLINE V take(V v, std::size_t /*source*/) const {
    return truth(v);
  }
};

void reduce_bits(const Reduction& reduction, const Buffers& buffers) {
  switch (reduction.op) {
    case ReduceOp::band: return reduce_with<Bytes>(And(), buffers);
    case ReduceOp::bor: return reduce_with<Bytes>(Or(), buffers);
    case ReduceOp::bxor: return reduce_with<Bytes>(Xor(), buffers);
    default: return;  // `reduce` sends nobody else here
  }
}

void reduce_logical(const Reduction& reduction, const Buffers& buffers) {
  switch (reduction.op) {
    case ReduceOp::sum:
    case ReduceOp::max:
    case ReduceOp::bor: return reduce_with<Bytes>(Any(), buffers);
    case ReduceOp::product:
    case ReduceOp::min:
    case ReduceOp::band: return reduce_with<Bytes>(All(), buffers);
    case ReduceOp::bxor: return reduce_with<Bytes>(Odd(), buffers);
    case ReduceOp::avg:
    case ReduceOp::premul_sum:
    case ReduceOp::reproducible_sum:
    case ReduceOp::reproducible_avg: return;  // can_reduce lets nobody come here
  }
}

}  // namespace tutti::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tutti::kernels {
namespace {
HWY_EXPORT(reduce_bits);
HWY_EXPORT(reduce_logical);
}  // namespace

void reduce_bits(const Reduction& reduction, const Buffers& buffers) {
  HWY_DYNAMIC_DISPATCH(reduce_bits)(reduction, buffers);
}

void reduce_logical(const Reduction& reduction, const Buffers& buffers) {
  HWY_DYNAMIC_DISPATCH(reduce_logical)(reduction, buffers);
}

}  // namespace tutti::kernels
#endif
