// Reproducible sums of two addends. Compiled once for each kind of vector; include after hwy/foreach_target.h.
//
// Two need no digits. The larger one is kept whole. Of the smaller one, what is below the last digit beside the larger
// is rounded away; that done, the processor's own addition rounds the exact sum once.
#if defined(TUTTI_KERNELS_PAIR_SUM_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TUTTI_KERNELS_PAIR_SUM_INL_H
#undef TUTTI_KERNELS_PAIR_SUM_INL_H
#else
#define TUTTI_KERNELS_PAIR_SUM_INL_H
#endif

#include <cstddef>
#include <limits>

#include <hwy/highway.h>

#include "tutti/kernels/operations-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tutti::kernels::HWY_NAMESPACE {

/// The power of two next to which a number's last bit is the last that is kept beside `most`; in the lowest bins, where
/// everything is kept, zero. (Of NaN and infinity any number.)
template <class D>
HWY_INLINE hn::Vec<D> keeper_of(D d, hn::Vec<D> most) {
  using T = hn::TFromD<D>;
  const hn::RebindToSigned<D> words;
  constexpr int kMantissa = std::numeric_limits<T>::digits - 1;
  const auto exponent = [&](int value)
                            HWY_ATTR { return hn::Set(words, hn::TFromD<decltype(words)>{value} << kMantissa); };
  // A bin's exponents begin at 2 + 32 k. Its unit's is one more, and so many digits lie below, of 32 bits each.
  const auto begin = hn::And(hn::Sub(hn::BitCast(words, most), exponent(2)), exponent(-32));
  constexpr int kBelow = sizeof(T) == 8 ? 64 : 32;
  const auto keeper = hn::BitCast(d, hn::Add(begin, exponent(3 - kBelow + kMantissa)));
  return hn::Max(keeper, hn::Zero(d));  // an exponent below zero has run into the sign
}

/// `v` without what is not kept; never -0.
template <class D>
HWY_INLINE hn::Vec<D> kept(D /*d*/, hn::Vec<D> v, hn::Vec<D> keeper) {
  const auto beside = hn::CopySign(keeper, v);
  return hn::IfThenElse(hn::Le(hn::Abs(v), keeper), hn::Sub(hn::Add(v, beside), beside), v);
}

/// Of float32 or float64: a + b, or half of it.
template <bool kHalf>
struct PairSum : PlainOperation {
  template <class V>
  HWY_INLINE V combine(V a, V b) const {
    const hn::DFromV<V> d;
    const auto most = hn::Max(hn::Abs(a), hn::Abs(b));
    const auto keeper = keeper_of(d, most);
    a = kept(d, a, keeper);
    b = kept(d, b, keeper);
    if constexpr (kHalf) {
      // Large ones could overflow, and halves of small ones be rounded: either way is exact where the other is not.
      const auto half = hn::Set(d, hn::TFromV<V>{0.5});
      const auto one = hn::Set(d, hn::TFromV<V>{1});
      const auto sum_of_halves = hn::Add(hn::Mul(a, half), hn::Mul(b, half));
      return hn::IfThenElse(hn::Gt(most, one), sum_of_halves, hn::Mul(hn::Add(a, b), half));
    } else {
      return hn::Add(a, b);
    }
  }
};

}  // namespace tutti::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
