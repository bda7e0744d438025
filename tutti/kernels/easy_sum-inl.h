// Reproducible sums that are easy. Compiled once for each kind of vector; include after hwy/foreach_target.h.
//
// Mostly the addends are of like size, so that none of them has a bit below the digits that are kept, and a double
// holds their sum exactly. Then that sum is what the digits add up to, without a digit.
#if defined(TUTTI_KERNELS_EASY_SUM_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TUTTI_KERNELS_EASY_SUM_INL_H
#undef TUTTI_KERNELS_EASY_SUM_INL_H
#else
#define TUTTI_KERNELS_EASY_SUM_INL_H
#endif

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include <hwy/highway.h>

#include "tutti/kernels/round_once-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tutti::kernels::HWY_NAMESPACE {

/// Whether the sums of all lanes are easy, of float32 with numbers of so many bits; and the largest magnitude in each,
/// as bits, which sums that are not easy need.
template <int kBits, class DW>
HWY_INLINE bool is_easy(DW words, std::span<const std::byte* const> sources, std::size_t at, hn::Vec<DW>& most) {
  const hn::RebindToUnsigned<DW> bits;
  const auto exponent = [&](int value) HWY_ATTR { return hn::Set(words, value * (1 << 23)); };
  most = hn::Zero(words);
  auto least = hn::Set(bits, 0x7FFFFFFF);  // one less than the least that is not zero
#pragma GCC unroll 4                       // addresses and the loop itself count
  for (const auto* source : sources) {
    const auto magnitude =
        hn::And(hn::LoadU(words, reinterpret_cast<const std::int32_t*>(source) + at), hn::Set(words, 0x7FFFFFFF));
    most = hn::Max(most, magnitude);
    least = hn::Min(least, hn::BitCast(bits, hn::Sub(magnitude, hn::Set(words, 1))));
  }
  const auto low = hn::BitCast(words, least);
  // A double holds the bits of one addend, those between the exponents, and what so many addends carry.
  const int room = 53 - kBits - std::bit_width(sources.size() - 1);
  const auto too_wide = hn::Gt(hn::Sub(most, low), exponent(room));
  const auto is_large = hn::Gt(most, exponent(224));  // beyond, `bin` overflows; and there infinity and NaN are
  // The bin of the largest, whose exponents begin at 2 + 32 k, is here 32 k + 32. The last bit that is kept is 61
  // below, the last of an addend kBits - 1 below its first.
  const auto bin = hn::And(hn::Add(most, exponent(30)), hn::Set(words, -(32 << 23)));
  const auto drops_bits = hn::Lt(low, hn::Sub(bin, exponent(62 - kBits)));
  return hn::AllFalse(words, hn::Or(hn::Or(too_wide, is_large), drops_bits));
}

template <class D>
HWY_INLINE hn::Vec<D> easy_sum(D d, std::span<const std::byte* const> sources, std::size_t at) {
  auto sum = hn::Zero(d);
#pragma GCC unroll 4  // addresses and the loop itself count
  for (const auto* source : sources) {
    sum = hn::Add(sum, load_wide(d, reinterpret_cast<const float*>(source) + at));
  }
  return sum;
}

}  // namespace tutti::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
