// Reproducible sums of float32 to which nothing will be added any more. Compiled once for each kind of vector; include
// after hwy/foreach_target.h.
//
// Where a sum goes on, each addend's digits count, since later ones may push the lower out. Where it does not, only
// what they add up to does: an addend is one whole number in units of the lower digit, rounded once.
#if defined(TUTTI_KERNELS_SUM_AT_ONCE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TUTTI_KERNELS_SUM_AT_ONCE_INL_H
#undef TUTTI_KERNELS_SUM_AT_ONCE_INL_H
#else
#define TUTTI_KERNELS_SUM_AT_ONCE_INL_H
#endif

#include <cstddef>
#include <span>

#include <hwy/highway.h>

#include "tutti/kernels/binned-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tutti::kernels::HWY_NAMESPACE {

#if HWY_TARGET <= HWY_AVX3
/// The nearest whole number, of two the even one. Highway has no name for it.
template <class D>
HWY_INLINE hn::VFromD<hn::RebindToSigned<D>> nearest_whole(D /*d*/, hn::Vec<D> v) {
  if constexpr (sizeof(v.raw) == sizeof(__m512d)) {
    return {_mm512_cvtpd_epi64(v.raw)};
  } else if constexpr (sizeof(v.raw) == sizeof(__m256d)) {
    return {_mm256_cvtpd_epi64(v.raw)};
  } else {
    return {_mm_cvtpd_epi64(v.raw)};
  }
}

/// The sum of all sources' elements from `at` on, of which `most` is the largest magnitude, finite. All numbers
/// together may overflow; their upper halves do not, and with them the lower halves' sum is found.
template <class D, class W = WholeVector<D>>
HWY_INLINE void add_whole_numbers(D d, std::span<const std::byte* const> sources, std::size_t at, hn::Vec<D> most,
                                  W& code, W& a, W& b) {
  const hn::RebindToSigned<D> words;
  constexpr int kSmallest = 1023 - 149;  // exponent of a float32, also where there are only zeros
  const auto exponent = hn::Max(hn::BitCast(words, exponent_of(d, most)), hn::Set(words, kSmallest));
  code = bin_of(d, hn::BitCast(Whole<D>(), exponent));
  const auto unit = hn::BitCast(Whole<D>(), to_unit(d, code));
  const auto scale = hn::BitCast(d, hn::Add(unit, whole(d, std::uint64_t{32} << 52)));
  auto all = hn::Zero(words);
  auto upper = hn::Zero(words);
#pragma GCC unroll 4  // addresses and the loop itself count
  for (const auto* source : sources) {
    const auto x = load_wide(d, reinterpret_cast<const float*>(source) + at);
    const auto number = nearest_whole(d, hn::Mul(x, scale));
    all = hn::Add(all, number);
    upper = hn::Add(upper, hn::ShiftRight<32>(number));
  }
  a = hn::BitCast(Whole<D>(), upper);
  b = hn::BitCast(Whole<D>(), hn::Sub(all, hn::ShiftLeft<32>(upper)));
}
#endif

/// The same, of any numbers, for a sum that is rounded next.
template <class D, class W = WholeVector<D>>
HWY_INLINE void add_up_at_once(D d, std::span<const std::byte* const> sources, std::size_t at, hn::Vec<D> most, W& code,
                               W& a, W& b) {
#if HWY_TARGET <= HWY_AVX3
  if (hn::AllFalse(Whole<D>(), hn::Eq(exponent_of(d, most), whole(d, 2047)))) {
    return add_whole_numbers(d, sources, at, most, code, a, b);
  }
#endif
  W none;
  add_up<float>(d, sources, at, most, code, a, b, none);
}

}  // namespace tutti::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
