// The arithmetic of reproducible sums, on vectors. Compiled once for each kind of vector; include after
// hwy/foreach_target.h.
//
// The exponents are divided into bins of 32: bin c has the unit 2^(32 c - 1020). A number belongs to the bin of which
// it is at least half a unit, but less than half a unit of the next. It is cut into digits: the multiple of its bin's
// unit that is nearest to it, of what is left the nearest multiple of the unit below, and so on. Digits depend on the
// number alone, and sums of digits are exact, so their order means nothing. Of the bins, those from the largest
// addend's downwards are kept, 2 for float32, 3 for float64: an addend that comes later can only push digits out at the
// bottom, and they are the ones that would not have been added had it come first.
//
// A sum is a code (its highest bin; kSpecial when there are infinities or NaNs) and digits, whole numbers `a`, `b`, `c`
// in units of that bin and of the two below. Where a NaN or an infinity was added, `a` counts +inf and NaN, `b` -inf
// and NaN. No addends at all, or zeros: all zero.
#if defined(TUTTI_KERNELS_BINNED_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TUTTI_KERNELS_BINNED_INL_H
#undef TUTTI_KERNELS_BINNED_INL_H
#else
#define TUTTI_KERNELS_BINNED_INL_H
#endif

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tutti::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

inline constexpr std::uint64_t kSpecial = 127;
/// Where the code lies in the first word of an accumulator, above the first digit.
inline constexpr int kCodeShift = 57;

/// How many digits are kept.
template <class T>
inline constexpr int kDigits = sizeof(T) == 8 ? 3 : 2;

/// Next to such a number, a double's last bit is worth 2^exponent: adding it rounds to multiples of that.
constexpr double magic(int exponent) {
  return std::bit_cast<double>((static_cast<std::uint64_t>(1023 + 52 + exponent) << 52) | (std::uint64_t{1} << 51));
}
constexpr std::uint64_t bits_of(double value) { return std::bit_cast<std::uint64_t>(value); }

template <class D>
using Whole = hn::RebindToUnsigned<D>;
template <class D>
using WholeVector = hn::Vec<Whole<D>>;

template <class D>
HWY_INLINE WholeVector<D> whole(D /*d*/, std::uint64_t value) {
  return hn::Set(Whole<D>(), value);
}

template <class D>
HWY_INLINE hn::Vec<D> load_wide(D d, const float* from) {
  return hn::PromoteTo(d, hn::LoadU(hn::Rebind<float, D>(), from));
}
template <class D>
HWY_INLINE hn::Vec<D> load_wide(D d, const double* from) {
  return hn::LoadU(d, from);
}

/// The largest magnitude of an element of all sources; as bits, where NaN is above infinity.
template <class D>
HWY_INLINE hn::Vec<D> largest(D d, std::span<const std::byte* const> sources, std::size_t at, float /*type*/) {
  const hn::Rebind<std::int32_t, D> words;
  auto most = hn::Zero(words);
  for (const auto* source : sources) {
    const auto bits = hn::LoadU(words, reinterpret_cast<const std::int32_t*>(source) + at);
    most = hn::Max(most, hn::And(bits, hn::Set(words, 0x7FFFFFFF)));
  }
  return hn::PromoteTo(d, hn::BitCast(hn::Rebind<float, D>(), most));
}
template <class D>
HWY_INLINE hn::Vec<D> largest(D d, std::span<const std::byte* const> sources, std::size_t at, double /*type*/) {
  const hn::RebindToSigned<D> words;
  auto most = hn::Zero(words);
  for (const auto* source : sources) {
    const auto bits = hn::LoadU(words, reinterpret_cast<const std::int64_t*>(source) + at);
    most = hn::Max(most, hn::And(bits, hn::Set(words, std::numeric_limits<std::int64_t>::max())));
  }
  return hn::BitCast(d, most);
}

template <class D>
HWY_INLINE WholeVector<D> exponent_of(D /*d*/, hn::Vec<D> magnitude) {
  return hn::ShiftRight<52>(hn::BitCast(Whole<D>(), magnitude));
}

/// The bin of a finite number. (The smallest of them belong to the first bin, too: its last digit holds them whole.)
template <class D>
HWY_INLINE WholeVector<D> bin_of(D d, WholeVector<D> exponent) {
  const hn::RebindToSigned<D> words;  // which compare faster
  const auto clamped = hn::Max(hn::BitCast(words, exponent), hn::Set(words, 2));
  return hn::ShiftRight<5>(hn::Sub(hn::BitCast(Whole<D>(), clamped), whole(d, 2)));
}

/// What makes the unit of a bin 1: 2^(1020 - 32 bin).
template <class D>
HWY_INLINE hn::Vec<D> to_unit(D d, WholeVector<D> bin) {
  return hn::BitCast(d, hn::Sub(whole(d, std::uint64_t{1023 + 1020} << 52), hn::ShiftLeft<kCodeShift>(bin)));
}

/// Adds the digits of x, which has been multiplied with `to_unit`; and to each digit the bits of its magic number.
template <int kCount, class D, class W = WholeVector<D>>
HWY_INLINE void add_digits(D d, hn::Vec<D> x, W& a, W& b, W& c) {
  const Whole<D> bits;
  const auto first = hn::Set(d, magic(0));
  const auto second = hn::Set(d, magic(-32));
  auto sum = hn::Add(x, first);
  a = hn::Add(a, hn::BitCast(bits, sum));
  x = hn::Sub(x, hn::Sub(sum, first));
  sum = hn::Add(x, second);
  b = hn::Add(b, hn::BitCast(bits, sum));
  if constexpr (kCount == 3) {
    x = hn::Sub(x, hn::Sub(sum, second));
    c = hn::Add(c, hn::BitCast(bits, hn::Add(x, hn::Set(d, magic(-64)))));
  }
}

/// Counts infinities and NaNs, and makes zeros of them.
template <class D, class W = WholeVector<D>>
HWY_INLINE hn::Vec<D> count_special(D d, hn::Vec<D> x, W& a, W& b) {
  const auto one = whole(d, 1);
  const auto zero = hn::Zero(d);
  const auto special = hn::Eq(exponent_of(d, hn::Abs(x)), whole(d, 2047));
  const auto counted = hn::IfThenElseZero(special, one);
  a = hn::Add(a, hn::IfThenZeroElse(hn::RebindMask(Whole<D>(), hn::Lt(x, zero)), counted));
  b = hn::Add(b, hn::IfThenZeroElse(hn::RebindMask(Whole<D>(), hn::Gt(x, zero)), counted));
  return hn::IfThenZeroElse(hn::RebindMask(d, special), x);
}

/// The sum of all sources' elements from `at` on, of which `most` is the largest magnitude.
template <class T, class D, class W = WholeVector<D>>
HWY_INLINE void add_up(D d, std::span<const std::byte* const> sources, std::size_t at, hn::Vec<D> most, W& code, W& a,
                       W& b, W& c) {
  const auto source = [&](std::size_t i) HWY_ATTR { return reinterpret_cast<const T*>(sources[i]) + at; };
  const auto exponent = exponent_of(d, most);
  const auto special = hn::Eq(exponent, whole(d, 2047));
  const std::uint64_t count = sources.size();
  a = whole(d, 0 - count * bits_of(magic(0)));
  b = whole(d, 0 - count * bits_of(magic(-32)));
  c = whole(d, kDigits<T> == 3 ? 0 - count * bits_of(magic(-64)) : 0);
  code = bin_of(d, exponent);
  auto scale = to_unit(d, code);
  if (hn::AllFalse(Whole<D>(), special)) {
    for (std::size_t i = 0; i < sources.size(); ++i) {
      add_digits<kDigits<T>>(d, hn::Mul(load_wide(d, source(i)), scale), a, b, c);
    }
    return;
  }
  code = hn::IfThenElse(special, whole(d, kSpecial), code);
  scale = hn::IfThenZeroElse(hn::RebindMask(d, special), scale);
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const auto x = count_special(d, load_wide(d, source(i)), a, b);
    add_digits<kDigits<T>>(d, hn::Mul(x, scale), a, b, c);
  }
}

/// Moves a sum's digits down to where they are in a sum whose code is `top`; those that fall out are lost.
template <int kCount, class D, class W = WholeVector<D>>
HWY_INLINE void lower(D d, W top, W code, W& a, W& b, W& c) {
  const auto steps = hn::Sub(top, code);
  const auto none = hn::Eq(steps, whole(d, 0));
  const auto one = hn::Eq(steps, whole(d, 1));
  if constexpr (kCount == 3) {
    const auto two = hn::Eq(steps, whole(d, 2));
    c = hn::IfThenElse(none, c, hn::IfThenElse(one, b, hn::IfThenElseZero(two, a)));
  }
  b = hn::IfThenElse(none, b, hn::IfThenElseZero(one, a));
  a = hn::IfThenElseZero(none, a);
}

/// Adds a second sum to the first.
template <int kCount, class D, class W = WholeVector<D>>
HWY_INLINE void merge(D d, W& code, W& a, W& b, W& c, W code2, W a2, W b2, W c2) {
  const hn::RebindToSigned<D> words;  // codes are small, and signed numbers compare faster
  const auto top = hn::BitCast(Whole<D>(), hn::Max(hn::BitCast(words, code), hn::BitCast(words, code2)));
  lower<kCount>(d, top, code, a, b, c);
  lower<kCount>(d, top, code2, a2, b2, c2);
  code = top;
  a = hn::Add(a, a2);
  b = hn::Add(b, b2);
  c = hn::Add(c, c2);
}

/// In memory: the code and the first digit in one word, then the others; for three digits a word of zeros.
template <int kCount, class D, class W = WholeVector<D>>
HWY_INLINE void load_sum(D d, const std::uint64_t* from, W& code, W& a, W& b, W& c) {
  const Whole<D> words;
  if constexpr (kCount == 3) {
    W rest;
    hn::LoadInterleaved4(words, from, a, b, c, rest);
  } else {
    hn::LoadInterleaved2(words, from, a, b);
    c = hn::Zero(words);
  }
  code = hn::ShiftRight<kCodeShift>(hn::Add(a, whole(d, std::uint64_t{1} << (kCodeShift - 1))));
  a = hn::Sub(a, hn::ShiftLeft<kCodeShift>(code));
}

template <int kCount, class D, class W = WholeVector<D>>
HWY_INLINE void store_sum(D /*d*/, W code, W a, W b, W c, std::uint64_t* to) {
  const Whole<D> words;
  const auto first = hn::Add(hn::ShiftLeft<kCodeShift>(code), a);
  if constexpr (kCount == 3) {
    hn::StoreInterleaved4(first, b, c, hn::Zero(words), words, to);
  } else {
    hn::StoreInterleaved2(first, b, words, to);
  }
}

}  // namespace tutti::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
