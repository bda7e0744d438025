// Reproducible sums that are easy. Compiled once for each kind of vector; include after hwy/foreach_target.h.
//
// Mostly the addends are of like size, so that none of them has a bit below the digits that are kept, and a double
// holds their sum exactly; of smaller floats, even a float32. Then that sum is what the digits add up to, without a
// digit.
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

/// Whether the sums of all lanes are easy, of numbers of so many bits; and the largest magnitude in each, which sums
/// that are not easy need.
template <int kBits, class D>
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
  // What holds the sum holds the bits of one addend, those between the exponents, and what so many addends carry.
  const int room = (kBits == 24 ? 53 : 24) - kBits - std::bit_width(sources.size() - 1);
  const auto too_wide = hn::Gt(hn::Sub(most, low), exponent(room));
  const auto is_large = hn::Gt(most, exponent(224));  // beyond, `bin` overflows; and there infinity and NaN are
  const auto is_hard = hn::Or(too_wide, is_large);
  if constexpr (kBits < 24) {
    return hn::AllFalse(words, is_hard);  // far above the lowest bit that is kept
  } else {
    // The bin of the largest, as the exponents in it begin at 3 + 32 k; below that unit there are 32 bits, of which a
    // float's last is the 23rd below its first.
    const auto bin = hn::And(hn::Add(most, exponent(30)), hn::Set(words, -(32 << 23)));
    const auto drops_bits = hn::Lt(low, hn::Sub(bin, exponent(38)));
    return hn::AllFalse(words, hn::Or(is_hard, drops_bits));
  }
}

/// As float32 or as double: the lanes of either are as many as the elements.
template <class D>
HWY_INLINE hn::Vec<D> easy_sum(D d, std::span<const std::byte* const> sources, std::size_t at) {
  auto sum = hn::Zero(d);
  for (const auto* source : sources) {
    const auto* const from = reinterpret_cast<const float*>(source) + at;
    if constexpr (sizeof(hn::TFromD<D>) == 4) {
      sum = hn::Add(sum, hn::LoadU(d, from));
    } else {
      sum = hn::Add(sum, load_wide(d, from));
    }
  }
  return sum;
}

/// Two finite addends of at most 24 bits need no digits: next to the magic number of the last unit, what is too small
/// is rounded to it, and what is larger than that number's bits stays as it is.
template <class D>
HWY_INLINE hn::Vec<D> pair_sum(D d, const Divisor& by, const float* first, const float* second, hn::Vec<D> most) {
  const auto code = bin_of(d, exponent_of(d, most));
  const auto scale = to_unit(d, code);
  const auto last = hn::Set(d, magic(-32));
  const auto a = hn::Sub(hn::Add(hn::Mul(load_wide(d, first), scale), last), last);
  const auto b = hn::Sub(hn::Add(hn::Mul(load_wide(d, second), scale), last), last);
  return hn::Mul(divided(d, by, odd_sum(d, a, b)), from_unit(d, code));
}

}  // namespace tutti::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
