// Reproducible sums of float32 that are easy. Compiled once for each kind of vector; include after
// hwy/foreach_target.h.
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

#include "tutti/kernels/binned-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tutti::kernels::HWY_NAMESPACE {

/// Whether the sums of all lanes are easy; and the largest magnitude in each, which the others need.
template <class D>
HWY_INLINE bool is_easy(D d, std::span<const std::byte* const> sources, std::size_t at, hn::Vec<D>& largest) {
  const hn::Rebind<std::int32_t, D> words;
  const hn::Rebind<std::uint32_t, D> bits;
  const auto exponent = [&](int value) HWY_ATTR { return hn::Set(words, value * (1 << 23)); };
  auto most = hn::Zero(words);
  auto least = hn::Set(bits, 0x7FFFFFFF);  // one less than the least that is not zero
  for (const auto* source : sources) {
    const auto magnitude =
        hn::And(hn::LoadU(words, reinterpret_cast<const std::int32_t*>(source) + at), hn::Set(words, 0x7FFFFFFF));
    most = hn::Max(most, magnitude);
    least = hn::Min(least, hn::BitCast(bits, hn::Sub(magnitude, hn::Set(words, 1))));
  }
  largest = hn::PromoteTo(d, hn::BitCast(hn::Rebind<float, D>(), most));
  const auto low = hn::BitCast(words, least);
  // The bin of the largest, as the exponents in it begin at 3 + 32 k; below that unit there are 32 bits, of which a
  // float's last is the 23rd below its first.
  const auto bin = hn::And(hn::Add(most, exponent(30)), hn::Set(words, -(32 << 23)));
  const auto drops_bits = hn::Lt(low, hn::Sub(bin, exponent(38)));
  // 53 bits are 24, and those between the exponents, and what so many addends carry.
  const int carry = std::bit_width(sources.size() - 1);
  const auto too_wide = hn::Gt(hn::Sub(most, low), exponent(29 - carry));
  const auto is_large = hn::Gt(most, exponent(224));  // beyond, `bin` overflows; and there infinity and NaN are
  return hn::AllFalse(words, hn::Or(hn::Or(drops_bits, too_wide), is_large));
}

template <class D>
HWY_INLINE hn::Vec<D> easy_sum(D d, std::span<const std::byte* const> sources, std::size_t at) {
  auto sum = hn::Zero(d);
  for (const auto* source : sources) {
    sum = hn::Add(sum, load_wide(d, reinterpret_cast<const float*>(source) + at));
  }
  return sum;
}

}  // namespace tutti::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
