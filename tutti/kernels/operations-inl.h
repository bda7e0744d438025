// What numbers are reduced with. Compiled once for each kind of vector; include after hwy/foreach_target.h.
#if defined(TUTTI_KERNELS_OPERATIONS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TUTTI_KERNELS_OPERATIONS_INL_H
#undef TUTTI_KERNELS_OPERATIONS_INL_H
#else
#define TUTTI_KERNELS_OPERATIONS_INL_H
#endif

#include <bit>
#include <concepts>
#include <cstddef>
#include <span>

#include <hwy/highway.h>

#include "tutti/kernels/blocks-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tutti::kernels::HWY_NAMESPACE {

/// An operation that needs only `combine`.
struct PlainOperation {
  template <class V>
  HWY_INLINE V take(V v, std::size_t /*source*/) const {
    return v;
  }
  template <class V>
  HWY_INLINE V finish(V v) const {
    return v;
  }
};

struct Sum : PlainOperation {
  template <class V>
  HWY_INLINE V combine(V a, V b) const {
    return hn::Add(a, b);
  }
};

/// A division, not a product with a rounded 1/n: the mean is then rounded once.
class Average : public Sum {
 public:
  explicit Average(std::size_t sources) : sources_(sources) {}

  template <class V>
  HWY_INLINE V finish(V v) const {
    return hn::Div(v, hn::Set(hn::DFromV<V>(), static_cast<hn::TFromV<V>>(sources_)));
  }

 private:
  std::size_t sources_;
};

/// The mean of 2, 4, 8, ... sources: 1/n is exact, the product has the quotient's bits, and takes half the time.
class AverageOfPower : public Sum {
 public:
  explicit AverageOfPower(std::size_t sources) : inverse_(1.0 / static_cast<double>(sources)) {}

  template <class V>
  HWY_INLINE V finish(V v) const {
    return hn::Mul(v, hn::Set(hn::DFromV<V>(), static_cast<hn::TFromV<V>>(inverse_)));
  }

 private:
  double inverse_;
};

/// Multiplies, rounds, adds. Not every processor can do it in one step, so none does; see CMakeLists.txt, too.
class PremultipliedSum : public Sum {
 public:
  explicit PremultipliedSum(std::span<const double> factors) : factors_(factors) {}

  template <class V>
  HWY_INLINE V take(V v, std::size_t source) const {
    return hn::Mul(v, hn::Set(hn::DFromV<V>(), static_cast<hn::TFromV<V>>(factors_[source])));
  }

 private:
  std::span<const double> factors_;
};

struct Product : PlainOperation {
  template <class V>
  HWY_INLINE V combine(V a, V b) const {
    if constexpr (sizeof(hn::TFromV<V>) == 1 && HWY_TARGET != HWY_SCALAR) {
      return bytewise(a, b);
    } else {
      return hn::Mul(a, b);
    }
  }

 private:
  /// Processors multiply no bytes: so the even and the odd ones, each as 16 bits.
  template <class V>
  static HWY_INLINE V bytewise(V a, V b) {
    const hn::DFromV<V> bytes;
    const hn::RepartitionToWide<hn::DFromV<V>> wide;
    const auto even = hn::Mul(hn::BitCast(wide, a), hn::BitCast(wide, b));
    const auto odd = hn::Mul(hn::ShiftRight<8>(hn::BitCast(wide, a)), hn::ShiftRight<8>(hn::BitCast(wide, b)));
    return hn::OddEven(hn::BitCast(bytes, hn::ShiftLeft<8>(odd)), hn::BitCast(bytes, even));
  }
};

/// Of floats not with the processor's own minimum: those differ in NaN and in the sign of zero.
struct Least : PlainOperation {
  template <class V>
  HWY_INLINE V combine(V a, V b) const {
    if constexpr (std::floating_point<hn::TFromV<V>>) {
      return hn::IfThenElse(hn::Or(hn::Lt(a, b), hn::IsNaN(a)), a, b);
    } else {
      return hn::Min(a, b);
    }
  }
};

struct Greatest : PlainOperation {
  template <class V>
  HWY_INLINE V combine(V a, V b) const {
    if constexpr (std::floating_point<hn::TFromV<V>>) {
      return hn::IfThenElse(hn::Or(hn::Gt(a, b), hn::IsNaN(a)), a, b);
    } else {
      return hn::Max(a, b);
    }
  }
};

template <Codec C>
void average_float(const Reduction& reduction, const Buffers& buffers) {
  const std::size_t divisor = reduction.divisor == 0 ? buffers.sources.size() : reduction.divisor;
  std::has_single_bit(divisor) ? reduce_with<C>(AverageOfPower(divisor), buffers)
                               : reduce_with<C>(Average(divisor), buffers);
}

/// Everything that floats can be reduced with.
template <Codec C>
void reduce_float(const Reduction& reduction, const Buffers& buffers) {
  switch (reduction.op) {
    case ReduceOp::sum: return reduce_with<C>(Sum(), buffers);
    case ReduceOp::avg: return average_float<C>(reduction, buffers);
    case ReduceOp::product: return reduce_with<C>(Product(), buffers);
    case ReduceOp::min: return reduce_with<C>(Least(), buffers);
    case ReduceOp::max: return reduce_with<C>(Greatest(), buffers);
    case ReduceOp::premul_sum: return reduce_with<C>(PremultipliedSum(reduction.factors), buffers);
    case ReduceOp::band:
    case ReduceOp::bor:
    case ReduceOp::bxor:              // can_reduce lets nobody come here
    case ReduceOp::reproducible_sum:  // these have kernels of their own
    case ReduceOp::reproducible_avg: return;
  }
}

}  // namespace tutti::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
