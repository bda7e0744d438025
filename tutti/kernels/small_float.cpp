#include "tutti/kernels/small_float.h"

#include <bit>
#include <cmath>

namespace tutti::kernels {
namespace {

constexpr std::uint32_t kFloatMantissa = 23;

/// A small float's shape. `kNoInfinity`: the top exponent holds numbers, too; only all ones is NaN.
template <unsigned ExponentBits, unsigned MantissaBits, bool kNoInfinity>
struct Shape {
  static constexpr unsigned kMantissa = MantissaBits;
  static constexpr std::uint32_t kTopExponent = (1U << ExponentBits) - 1;
  static constexpr int kBias = static_cast<int>(kTopExponent >> 1);
  static constexpr std::uint32_t kSign = 1U << (ExponentBits + MantissaBits);
  static constexpr std::uint32_t kMantissaMask = (1U << MantissaBits) - 1;
  static constexpr std::uint32_t kInfinity = kTopExponent << MantissaBits;
  static constexpr std::uint32_t kNan =
      kNoInfinity ? (kInfinity | kMantissaMask) : (kInfinity | (1U << (MantissaBits - 1)));
  /// Rounded results from here on do not fit.
  static constexpr std::uint32_t kOverflow = kNoInfinity ? kNan : kInfinity;
  static constexpr std::uint32_t kOverflowResult = kNoInfinity ? kNan : kInfinity;

  static float widen(std::uint32_t bits) {
    const float sign = (bits & kSign) != 0 ? -1.0F : 1.0F;
    const auto exponent = (bits & ~kSign) >> MantissaBits;
    const auto mantissa = bits & kMantissaMask;
    if (exponent == kTopExponent && (!kNoInfinity || mantissa == kMantissaMask)) {
      return mantissa == 0 ? sign * INFINITY : std::copysign(NAN, sign);
    }
    if (exponent == 0) {
      return sign * std::ldexp(static_cast<float>(mantissa), 1 - kBias - static_cast<int>(MantissaBits));
    }
    return sign * std::ldexp(static_cast<float>(mantissa | (1U << MantissaBits)),
                             static_cast<int>(exponent) - kBias - static_cast<int>(MantissaBits));
  }

  static std::uint32_t narrow(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t sign = (bits >> 31) != 0 ? kSign : 0;
    if (std::isnan(value)) {
      return sign | kNan;
    }
    const int exponent = static_cast<int>((bits >> kFloatMantissa) & 0xFF) - 127;
    if (exponent > kBias + 1) {
      return sign | kOverflowResult;
    }
    // Below the smallest normal number the result loses one more bit of mantissa for each step.
    const int lost = exponent < 1 - kBias ? 1 - kBias - exponent : 0;
    const unsigned shift = kFloatMantissa - MantissaBits + static_cast<unsigned>(lost);
    if (shift > kFloatMantissa + 1) {
      return sign;
    }
    const std::uint32_t mantissa = (bits & 0x7FFFFF) | (1U << kFloatMantissa);
    std::uint32_t rounded = mantissa >> shift;
    const std::uint32_t rest = mantissa & ((1U << shift) - 1);
    const std::uint32_t half = 1U << (shift - 1);
    if (rest > half || (rest == half && (rounded & 1U) != 0)) {
      ++rounded;
    }
    // A carry out of the mantissa lands in the exponent, which is just where it belongs.
    const std::uint32_t base = lost > 0 ? 0 : static_cast<std::uint32_t>(exponent + kBias - 1) << MantissaBits;
    const std::uint32_t result = base + rounded;
    return sign | (result >= kOverflow ? kOverflowResult : result);
  }
};

using Half = Shape<5, 10, false>;
using E4M3 = Shape<4, 3, true>;
using E5M2 = Shape<5, 2, false>;

}  // namespace

float widen(Float16 value) { return Half::widen(value.bits); }
float widen(BFloat16 value) { return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16); }
float widen(Float8E4M3 value) { return E4M3::widen(value.bits); }
float widen(Float8E5M2 value) { return E5M2::widen(value.bits); }

template <>
Float16 narrow<Float16>(float value) {
  return {static_cast<std::uint16_t>(Half::narrow(value))};
}

template <>
BFloat16 narrow<BFloat16>(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) {
    return {static_cast<std::uint16_t>((bits >> 16) | 0x40)};
  }
  return {static_cast<std::uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1U)) >> 16)};
}

template <>
Float8E4M3 narrow<Float8E4M3>(float value) {
  return {static_cast<std::uint8_t>(E4M3::narrow(value))};
}

template <>
Float8E5M2 narrow<Float8E5M2>(float value) {
  return {static_cast<std::uint8_t>(E5M2::narrow(value))};
}

}  // namespace tutti::kernels
