// Rounds reproducible sums, once. Compiled once for each kind of vector; include after hwy/foreach_target.h.
//
// A number that is rounded twice can end beside the nearest one. It does not, if the first rounding is to odd: what is
// not exact becomes the neighbour whose last bit is 1, which is never half way between two numbers of fewer bits.
#if defined(TUTTI_KERNELS_ROUND_ONCE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TUTTI_KERNELS_ROUND_ONCE_INL_H
#undef TUTTI_KERNELS_ROUND_ONCE_INL_H
#else
#define TUTTI_KERNELS_ROUND_ONCE_INL_H
#endif

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>

#include <hwy/highway.h>

#include "tutti/kernels/binned-inl.h"
#include "tutti/kernels/blocks-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tutti::kernels::HWY_NAMESPACE {

/// What a sum is divided by. Dividing by a power of two is a product with its inverse, which is exact.
struct Divisor {
  explicit Divisor(std::size_t by)
      : value(static_cast<double>(by)), inverse(1 / value), is_one(by == 1), is_power(std::has_single_bit(by)) {}

  double value;
  double inverse;
  bool is_one;
  bool is_power;
};

/// `rounded`, when what was rounded away (its sign matters, and whether it is zero) is `error`: to odd.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V to_odd(D d, V rounded, V error) {
  const Whole<D> words;
  const auto bits = hn::BitCast(words, rounded);
  const auto inexact = hn::IfThenZeroElse(hn::RebindMask(words, hn::Eq(error, hn::Zero(d))), hn::Set(words, 1));
  constexpr int kSign = 8 * sizeof(hn::TFromD<D>) - 1;
  const auto away = hn::And(hn::ShiftRight<kSign>(hn::Xor(bits, hn::BitCast(words, error))), inexact);
  return hn::BitCast(d, hn::Or(hn::Sub(bits, away), inexact));
}

/// a + b, and what was rounded away.
template <class V>
HWY_INLINE V two_sum(V a, V b, V& error) {
  const auto sum = hn::Add(a, b);
  const auto b_in_sum = hn::Sub(sum, a);
  error = hn::Add(hn::Sub(a, hn::Sub(sum, b_in_sum)), hn::Sub(b, b_in_sum));
  return sum;
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V odd_sum(D d, V a, V b) {
  V error;
  const auto sum = two_sum(a, b, error);
  return to_odd(d, sum, error);
}

/// The product tells on which side of a number of few bits the quotient lies (it is exact then); elsewhere either side
/// will do.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V odd_quotient(D d, V v, V by) {
  const auto quotient = hn::Div(v, by);
  return to_odd(d, quotient, hn::Sub(v, hn::Mul(quotient, by)));
}

/// A digit as a number: a whole number times 2^exponent.
template <int kExponent, class D>
HWY_INLINE hn::Vec<D> as_number(D d, WholeVector<D> digit) {
  const auto bits = hn::Add(digit, whole(d, bits_of(magic(kExponent))));
  return hn::Sub(hn::BitCast(d, bits), hn::Set(d, magic(kExponent)));
}

/// The unit of a bin: 2^(32 bin - 1020).
template <class D>
HWY_INLINE hn::Vec<D> from_unit(D d, WholeVector<D> bin) {
  return hn::BitCast(d, hn::Add(hn::ShiftLeft<kCodeShift>(bin), whole(d, std::uint64_t{1023 - 1020} << 52)));
}

/// A sum that is exact or rounded to odd, divided, rounded to odd: for a type of at most 25 bits.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V divided(D d, const Divisor& by, V sum) {
  if (by.is_one) {
    return sum;
  }
  return by.is_power ? hn::Mul(sum, hn::Set(d, by.inverse)) : odd_quotient(d, sum, hn::Set(d, by.value));
}

/// Two digits, the same.
template <class D, class W = WholeVector<D>>
HWY_INLINE hn::Vec<D> rounded_pair(D d, const Divisor& by, W code, W a, W b) {
  const auto sum = odd_sum(d, as_number<0>(d, a), as_number<-32>(d, b));
  return hn::Mul(divided(d, by, sum), from_unit(d, code));
}

/// (high + low) / by: the nearest number, and the rest, rounded to odd.
template <class D, class V = hn::Vec<D>>
HWY_INLINE void divide_twice(D d, const Divisor& by, V& high, V& low) {
  if (by.is_power) {
    high = hn::Mul(high, hn::Set(d, by.inverse));
    low = hn::Mul(low, hn::Set(d, by.inverse));
    return;
  }
  const auto divisor = hn::Set(d, by.value);
  const auto quotient = hn::Div(high, divisor);
  // In two parts of at most 27 bits, whose products are exact: the divisor has at most 24.
  const auto upper = hn::And(quotient, hn::BitCast(d, whole(d, ~((std::uint64_t{1} << 27) - 1))));
  const auto rest = hn::Sub(hn::Sub(high, hn::Mul(upper, divisor)), hn::Mul(hn::Sub(quotient, upper), divisor));
  high = quotient;
  low = odd_quotient(d, odd_sum(d, rest, low), divisor);
}

/// high + low in lanes where that is below the smallest normal number, rounded to multiples of the smallest subnormal.
/// (Only means come there by rounding; sums are multiples of it.)
template <class D, class V = hn::Vec<D>>
HWY_INLINE V rounded_subnormal(D d, WholeVector<D> code, V high, V low, V sum) {
  const hn::RebindToSigned<D> words;
  const auto few = hn::Min(hn::BitCast(words, code), hn::Set(words, 3));  // above, there are no such numbers
  const auto exponent = hn::ShiftLeft<kCodeShift>(hn::BitCast(Whole<D>(), few));
  const auto normal = hn::BitCast(d, hn::Sub(whole(d, bits_of(0.25)), exponent));
  const auto is_small = hn::Le(hn::Abs(high), normal);
  if (hn::AllFalse(d, is_small)) {
    return sum;
  }
  const auto large = hn::CopySign(normal, high);
  V error;
  const auto shifted = two_sum(large, high, error);
  const auto result = hn::Sub(hn::Add(shifted, odd_sum(d, error, low)), large);
  return hn::IfThenElse(is_small, hn::CopySign(result, high), sum);
}

/// Three digits: rounded to float64.
template <class D, class W = WholeVector<D>>
HWY_INLINE hn::Vec<D> rounded_triple(D d, const Divisor& by, W code, W a, W b, W c) {
  hn::Vec<D> error;
  hn::Vec<D> error_below;
  const auto below = two_sum(as_number<-32>(d, b), as_number<-64>(d, c), error_below);
  auto high = two_sum(as_number<0>(d, a), below, error);
  auto low = odd_sum(d, error, error_below);
  auto sum = hn::Add(high, low);
  if (!by.is_one) {
    low = hn::Sub(low, hn::Sub(sum, high));
    high = sum;
    divide_twice(d, by, high, low);
    sum = rounded_subnormal(d, code, high, low, hn::Add(high, low));
  }
  return hn::Mul(sum, from_unit(d, code));
}

/// Of lanes with infinities or NaNs, what comes out; of the others, `sum`.
template <class D, class W = WholeVector<D>>
HWY_INLINE hn::Vec<D> with_special(D d, W code, W a, W b, hn::Vec<D> sum) {
  const Whole<D> words;
  const auto special = hn::Eq(code, hn::Set(words, kSpecial));
  if (hn::AllFalse(words, special)) {
    return sum;
  }
  const auto infinity = hn::Set(d, std::numeric_limits<double>::infinity());
  const auto no_plus = hn::RebindMask(d, hn::Eq(a, hn::Zero(words)));
  const auto no_minus = hn::RebindMask(d, hn::Eq(b, hn::Zero(words)));
  const auto both = hn::Set(d, std::numeric_limits<double>::quiet_NaN());
  const auto result = hn::IfThenElse(no_plus, hn::Neg(infinity), hn::IfThenElse(no_minus, infinity, both));
  return hn::IfThenElse(hn::RebindMask(d, special), result, sum);
}

/// The nearest float32. (Without vectors, Highway's own never gives infinity.)
template <class D>
HWY_INLINE hn::Vec<hn::Rebind<float, D>> nearest_float(D d, hn::Vec<D> v) {
  const hn::Rebind<float, D> floats;
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
  HWY_ALIGN double wide[HWY_MAX_BYTES / sizeof(double)];
  HWY_ALIGN float narrow[HWY_MAX_BYTES / sizeof(double)];
  hn::Store(v, d, wide);
  for (std::size_t i = 0; i < hn::Lanes(d); ++i) {
    narrow[i] = static_cast<float>(wide[i]);
  }
  return hn::Load(floats, narrow);
#else
  (void)d;
  return hn::DemoteTo(floats, v);
#endif
}

/// float32 rounded to odd: for a type of at most 22 bits.
template <class D>
HWY_INLINE hn::Vec<hn::Rebind<float, D>> odd_float(D d, hn::Vec<D> v) {
  const hn::Rebind<float, D> floats;
  const auto nearest = nearest_float(d, v);
  const auto wide = hn::PromoteTo(d, nearest);
  // As 1 or -1: the error itself may be too small for a float32.
  const auto error = hn::CopySign(hn::Set(d, 1.0), hn::Sub(v, wide));
  return to_odd(floats, nearest, nearest_float(d, hn::IfThenZeroElse(hn::Eq(v, wide), error)));
}

/// How many bits the numbers have that are added as T: T's own, or fewer when they are smaller floats that were
/// widened. Sums of those are rounded to odd, for they are rounded again when they are stored.
template <class T>
inline constexpr int kOwnBits = std::numeric_limits<T>::digits;

template <int kBits, class D>
HWY_INLINE auto as_float(D d, hn::Vec<D> wide) {
  if constexpr (kBits < kOwnBits<float>) {
    return odd_float(d, wide);
  } else {
    return one_nan(nearest_float(d, wide));
  }
}

}  // namespace tutti::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
