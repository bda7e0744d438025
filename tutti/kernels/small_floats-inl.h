// Codecs for floats of 16 and 8 bits. Compiled once for each kind of vector; include after hwy/foreach_target.h.
#if defined(TUTTI_KERNELS_SMALL_FLOATS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TUTTI_KERNELS_SMALL_FLOATS_INL_H
#undef TUTTI_KERNELS_SMALL_FLOATS_INL_H
#else
#define TUTTI_KERNELS_SMALL_FLOATS_INL_H
#endif

#include <concepts>
#include <cstddef>
#include <cstdint>

#include <hwy/highway.h>

#include "tutti/kernels/blocks-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tutti::kernels::HWY_NAMESPACE {

using Floats = hn::ScalableTag<float>;
using FloatVector = hn::Vec<Floats>;
/// Signed, because signed numbers compare faster.
using Words = hn::ScalableTag<std::int32_t>;
using WordVector = hn::Vec<Words>;

HWY_INLINE FloatVector as_floats(WordVector bits) { return hn::BitCast(Floats(), bits); }
HWY_INLINE WordVector as_words(FloatVector v) { return hn::BitCast(Words(), v); }
HWY_INLINE WordVector every(std::uint32_t bits) { return hn::Set(Words(), static_cast<std::int32_t>(bits)); }

/// The same for a block of small floats. NaNs are rare, and mostly one look says that there is none.
HWY_INLINE void one_nan(FloatVector& v0, FloatVector& v1, FloatVector& v2, FloatVector& v3) {
#if HWY_TARGET == HWY_AVX3
  // One comparison looks at two vectors; Highway has no name for it.
  const auto nans = static_cast<unsigned>(_mm512_cmp_ps_mask(v0.raw, v1.raw, _CMP_UNORD_Q)) |
                    static_cast<unsigned>(_mm512_cmp_ps_mask(v2.raw, v3.raw, _CMP_UNORD_Q));
  const bool found = nans != 0;
#else
  const auto sum = hn::Add(hn::Add(v0, v1), hn::Add(v2, v3));
  const bool found = !hn::AllFalse(Floats(), hn::IsNaN(sum));
#endif
  if (HWY_UNLIKELY(found)) {
    v0 = one_nan(v0);
    v1 = one_nan(v1);
    v2 = one_nan(v2);
    v3 = one_nan(v3);
  }
}

/// A small float in the low end of a word, and as float32. Gives the bits that small_float.h gives.
template <class F>
concept Format = std::unsigned_integral<typename F::Stored> && requires(WordVector bits, FloatVector v) {
  { F::widen(bits) } -> std::same_as<FloatVector>;
  { F::narrow(v) } -> std::same_as<WordVector>;
};

/// `kNoInfinity`: the top exponent holds numbers, too; only all ones is NaN.
template <std::unsigned_integral T, int kExponent, int kMantissa, bool kNoInfinity>
struct Shaped {
  using Stored = T;
  static constexpr int kBias = (1 << (kExponent - 1)) - 1;
  static constexpr int kShift = 23 - kMantissa;
  static constexpr std::uint32_t kSign = 1U << (kExponent + kMantissa);
  static constexpr std::uint32_t kInfinity = ((1U << kExponent) - 1) << kMantissa;
  static constexpr std::uint32_t kNan = kNoInfinity ? kSign - 1 : kInfinity | (1U << (kMantissa - 1));
  static constexpr std::uint32_t kOverflow = kNoInfinity ? kNan : kInfinity;
  /// What lies between the exponents of equal numbers, and the smallest normal number, as bits of float32.
  static constexpr std::uint32_t kRebias = static_cast<std::uint32_t>(127 - kBias) << 23;
  static constexpr std::uint32_t kNormal = kRebias + (1U << 23);

  static HWY_INLINE FloatVector widen(WordVector bits) {
    const auto magnitude = hn::And(bits, every(kSign - 1));
    const auto shifted = hn::ShiftLeft<kShift>(magnitude);
    // Read as if it were normal, a subnormal number is too large by the smallest normal one; the difference is exact.
    const auto subnormal = hn::Sub(as_floats(hn::Add(shifted, every(kNormal))), as_floats(every(kNormal)));
    const auto normal = as_floats(hn::Add(shifted, every(kRebias)));
    const auto is_subnormal = hn::RebindMask(Floats(), hn::Lt(magnitude, every(1U << kMantissa)));
    const auto number = as_words(hn::IfThenElse(is_subnormal, subnormal, normal));
    const auto special = hn::Or(shifted, every(0x7F800000));
    const auto sign = hn::ShiftLeft<31 - kExponent - kMantissa>(hn::And(bits, every(kSign)));
    return as_floats(hn::Or(hn::IfThenElse(hn::Lt(magnitude, every(kOverflow)), number, special), sign));
  }

  static HWY_INLINE WordVector narrow(FloatVector v) {
    const auto bits = as_words(v);
    const auto magnitude = hn::And(bits, every(0x7FFFFFFF));
    // A carry out of the mantissa lands in the exponent, which is just where it belongs.
    const auto odd = hn::And(hn::ShiftRight<kShift>(magnitude), every(1));
    const auto nearly_half = every((1U << (kShift - 1)) - 1 - kRebias);
    const auto normal = hn::ShiftRight<kShift>(hn::Add(hn::Add(magnitude, nearly_half), odd));
    // Next to a number whose last bit is worth the smallest subnormal one, the processor rounds to such.
    const auto large = every(static_cast<std::uint32_t>(127 + 24 - kBias - kMantissa) << 23);
    const auto subnormal = hn::Sub(as_words(hn::Add(as_floats(magnitude), as_floats(large))), large);
    const auto number = hn::IfThenElse(hn::Lt(magnitude, every(kNormal)), subnormal, normal);
    const auto sign = hn::And(hn::ShiftRight<31 - kExponent - kMantissa>(bits), every(kSign));
    const auto result = hn::Or(hn::Min(number, every(kOverflow)), sign);
    return hn::IfThenElse(hn::Gt(magnitude, every(0x7F800000)), every(kNan), result);
  }
};

using Half = Shaped<std::uint16_t, 5, 10, false>;
using E4M3 = Shaped<std::uint8_t, 4, 3, true>;
using E5M2 = Shaped<std::uint8_t, 5, 2, false>;

/// The upper half of float32.
struct UpperHalf {
  using Stored = std::uint16_t;

  static HWY_INLINE FloatVector widen(WordVector bits) { return as_floats(hn::ShiftLeft<16>(bits)); }

  static HWY_INLINE WordVector narrow(FloatVector v) {
    const auto bits = as_words(one_nan(v));
    const auto odd = hn::And(hn::ShiftRight<16>(bits), every(1));
    return hn::And(hn::ShiftRight<16>(hn::Add(hn::Add(bits, every(0x7FFF)), odd)), every(0xFFFF));
  }
};

/// A codec of vectors that are read and written one by one, as `R` does it.
template <class R>
struct OneByOne {
  using Stored = typename R::Stored;
  using Vector = FloatVector;
  static constexpr bool kLight = R::kLight;

  static HWY_INLINE std::size_t block() { return 4 * hn::Lanes(Floats()); }

  static HWY_INLINE void load(const Stored* from, Vector& v0, Vector& v1, Vector& v2, Vector& v3) {
    const std::size_t n = hn::Lanes(Floats());
    v0 = R::read(from);
    v1 = R::read(from + n);
    v2 = R::read(from + 2 * n);
    v3 = R::read(from + 3 * n);
  }

  static HWY_INLINE void encode(Vector& v0, Vector& v1, Vector& v2, Vector& v3) { R::encode(v0, v1, v2, v3); }

  /// Whether two blocks are, encoded.
  static HWY_INLINE bool same(Vector v0, Vector v1, Vector v2, Vector v3, Vector w0, Vector w1, Vector w2, Vector w3) {
    const auto differ = hn::Or(hn::Or(hn::Xor(as_words(v0), as_words(w0)), hn::Xor(as_words(v1), as_words(w1))),
                               hn::Or(hn::Xor(as_words(v2), as_words(w2)), hn::Xor(as_words(v3), as_words(w3))));
    return hn::AllTrue(Words(), hn::Eq(differ, hn::Zero(Words())));
  }

  static HWY_INLINE void store(Vector v0, Vector v1, Vector v2, Vector v3, Stored* to) {
    const std::size_t n = hn::Lanes(Floats());
    R::write(v0, to);
    R::write(v1, to + n);
    R::write(v2, to + 2 * n);
    R::write(v3, to + 3 * n);
  }
};

/// Small floats of any format, each widened to a word of its own.
template <Format F>
struct InWords {
  using Stored = typename F::Stored;
  using Narrow = hn::Rebind<Stored, Words>;
  static constexpr bool kLight = false;

  static HWY_INLINE FloatVector read(const Stored* from) {
    return F::widen(hn::PromoteTo(Words(), hn::LoadU(Narrow(), from)));
  }
  /// Only half of it: vectors of words are of one kind, whatever the format.
  static HWY_INLINE void encode(FloatVector& v0, FloatVector& v1, FloatVector& v2, FloatVector& v3) {
    v0 = as_floats(F::narrow(v0));
    v1 = as_floats(F::narrow(v1));
    v2 = as_floats(F::narrow(v2));
    v3 = as_floats(F::narrow(v3));
  }
  static HWY_INLINE void write(FloatVector v, Stored* to) {
    hn::StoreU(hn::DemoteTo(Narrow(), as_words(v)), Narrow(), to);
  }
};

template <Format F>
using Widened = OneByOne<InWords<F>>;

#if HWY_TARGET <= HWY_AVX2 || HWY_ARCH_ARM_A64
/// The processor converts.
struct Converted {
  using Stored = std::uint16_t;
  using Halves = hn::Rebind<hwy::float16_t, Floats>;
  using Bits = hn::Rebind<std::uint16_t, Floats>;
  static constexpr bool kLight = true;

  static HWY_INLINE FloatVector read(const Stored* from) {
    return hn::PromoteTo(Floats(), hn::BitCast(Halves(), hn::LoadU(Bits(), from)));
  }
  static HWY_INLINE void encode(FloatVector& v0, FloatVector& v1, FloatVector& v2, FloatVector& v3) {
    one_nan(v0, v1, v2, v3);
  }
  static HWY_INLINE void write(FloatVector v, Stored* to) {
    hn::StoreU(hn::BitCast(Bits(), hn::DemoteTo(Halves(), v)), Bits(), to);
  }
};
using Float16s = OneByOne<Converted>;
#else
using Float16s = Widened<Half>;
#endif

}  // namespace tutti::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
