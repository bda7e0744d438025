// Reproducible sums that an ordinary one decides. Compiled once for each kind of vector; include after
// hwy/foreach_target.h.
//
// An ordinary sum in doubles, and what is dropped below the last digit, are only so far from the sum of what is kept.
// Mostly both ends of that interval are rounded to the same number: then so is whatever lies between, and no digit has
// to be cut. (Smaller floats end half way between two of them too often.)
#if defined(TUTTI_KERNELS_NEAR_SUM_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TUTTI_KERNELS_NEAR_SUM_INL_H
#undef TUTTI_KERNELS_NEAR_SUM_INL_H
#else
#define TUTTI_KERNELS_NEAR_SUM_INL_H
#endif

#include <cstddef>
#include <span>

#include <hwy/highway.h>

#include "tutti/kernels/easy_sum-inl.h"
#include "tutti/kernels/round_once-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tutti::kernels::HWY_NAMESPACE {

/// Of more addends the interval is too wide to be of use.
inline constexpr std::size_t kMostNear = 256;

/// The most that is dropped of an addend beside the largest, of which these are the bits: half of the last unit that is
/// kept, and nothing in the lowest bins. (Of NaN and infinity any number.)
template <class DW>
HWY_INLINE hn::Vec<hn::RebindToFloat<DW>> dropped_beside(DW words, hn::Vec<DW> most) {
  const auto exponent = [&](int value) HWY_ATTR { return hn::Set(words, value * (1 << 23)); };
  // A bin's exponents begin at 2 + 32 k. Half of its unit has that exponent, half of the unit below 32 less.
  const auto begin = hn::And(hn::Sub(most, exponent(2)), hn::Set(words, -(32 << 23)));
  return hn::BitCast(hn::RebindToFloat<DW>(), hn::Max(hn::Sub(begin, exponent(30)), hn::Zero(words)));
}

/// How far a sum of float32 in doubles may be from the sum of what is kept.
template <class D>
HWY_INLINE hn::Vec<D> width_of_doubles(D d, std::size_t addends, hn::Vec<D> most, hn::Vec<D> dropped) {
  // Every addition rounds by at most 2^-53 of all magnitudes together; so does making an interval of it. Two more are
  // for the rounding of this bound.
  const auto n = static_cast<double>(addends);
  return hn::Add(hn::Mul(dropped, hn::Set(d, n)), hn::Mul(most, hn::Set(d, n * (n + 2) * 0x1p-53)));
}

/// The sum of all sources' elements from `at` on, if it is decided; whether it is.
template <class D>
HWY_INLINE bool sum_nearly(D d, const Divisor& by, std::span<const std::byte* const> sources, std::size_t at,
                           hn::Vec<D> width, hn::Vec<hn::Rebind<float, D>>& result) {
  const hn::Rebind<float, D> floats;
  const hn::Rebind<std::int32_t, D> words;
  const auto sum = easy_sum(d, sources, at);
  result = nearest_float(d, divided(d, by, hn::Sub(sum, width)));
  const auto upper = nearest_float(d, divided(d, by, hn::Add(sum, width)));
  // As bits: a sum that is nearly zero is not known to be positive. Beside infinities and NaNs the lower end is a NaN.
  const auto same = hn::Eq(hn::BitCast(words, result), hn::BitCast(words, upper));
  return hn::AllTrue(words, same) && hn::AllFalse(floats, hn::IsNaN(result));
}

}  // namespace tutti::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
