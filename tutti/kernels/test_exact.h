#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

/// Sums and means of doubles as whole numbers of 2^-1200, rounded to any format once: for tests only.
namespace tutti::kernels::reference {

/// A format of floats: so many bits of significand, and what its smallest and its largest numbers are made of.
struct FloatFormat {
  int bits;        ///< with the leading one
  int lowest;      ///< the smallest subnormal number is 2^lowest
  double largest;  ///< what is more, when rounded, does not fit
};

inline constexpr FloatFormat kFloat64{53, -1074, std::numeric_limits<double>::max()};
inline constexpr FloatFormat kFloat32{24, -149, std::numeric_limits<float>::max()};
inline constexpr FloatFormat kFloat16{11, -24, 65504};
inline constexpr FloatFormat kBFloat16{8, -133, 0x1.FEp127};
inline constexpr FloatFormat kFloat8E4M3{4, -9, 448};
inline constexpr FloatFormat kFloat8E5M2{3, -16, 57344};

class Exact {
 public:
  /// Adds a finite number.
  void add(double value) {
    if (value == 0) {
      return;
    }
    int exponent = 0;
    const auto significand = static_cast<std::uint64_t>(std::ldexp(std::frexp(std::fabs(value), &exponent), 53));
    const auto shift = static_cast<std::size_t>(exponent - 53 + kPoint);
    Words addend{};
    addend[shift / 32] = static_cast<std::uint32_t>(significand << (shift % 32));
    addend[shift / 32 + 1] = static_cast<std::uint32_t>((significand >> 1) >> (31 - shift % 32));
    addend[shift / 32 + 2] = shift % 32 == 0 ? 0 : static_cast<std::uint32_t>((significand >> 32) >> (32 - shift % 32));
    value < 0 ? add_words(negated(addend)) : add_words(addend);
  }

  /// The quotient, rounded to nearest even.
  [[nodiscard]] double rounded(const FloatFormat& format, std::uint32_t divisor = 1) const {
    const bool negative = (words_.back() >> 31) != 0;
    Words rest = negative ? negated(words_) : words_;
    std::uint64_t remainder = 0;
    for (std::size_t i = kWords; i-- > 0;) {
      remainder = (remainder << 32) | rest[i];
      rest[i] = static_cast<std::uint32_t>(remainder / divisor);
      remainder %= divisor;
    }
    const double magnitude = round_bits(rest, remainder != 0, format);
    return negative ? -magnitude : magnitude;
  }

 private:
  static constexpr int kPoint = 1200;
  static constexpr std::size_t kWords = 72;  // up to 2^1104
  using Words = std::array<std::uint32_t, kWords>;

  static Words negated(Words words) {
    std::uint64_t carry = 1;
    for (auto& word : words) {
      carry += static_cast<std::uint32_t>(~word);
      word = static_cast<std::uint32_t>(carry);
      carry >>= 32;
    }
    return words;
  }

  void add_words(const Words& addend) {
    std::uint64_t carry = 0;
    for (std::size_t i = 0; i < kWords; ++i) {
      carry += std::uint64_t{words_[i]} + addend[i];
      words_[i] = static_cast<std::uint32_t>(carry);
      carry >>= 32;
    }
  }

  static bool bit(const Words& words, int index) {
    return ((words[static_cast<std::size_t>(index) / 32] >> (index % 32)) & 1U) != 0;
  }

  static double round_bits(const Words& words, bool inexact, const FloatFormat& format) {
    int top = static_cast<int>(32 * kWords) - 1;
    while (top >= 0 && !bit(words, top)) {
      --top;
    }
    const int last = std::max(top - format.bits + 1, format.lowest + kPoint);  // the last bit that is kept
    std::uint64_t kept = 0;
    for (int i = top; i >= last; --i) {
      kept = (kept << 1) | (bit(words, i) ? 1U : 0U);
    }
    for (int i = 0; i < last - 1; ++i) {
      inexact = inexact || bit(words, i);
    }
    if (bit(words, last - 1) && (inexact || (kept & 1U) != 0)) {
      ++kept;
    }
    const double result = std::ldexp(static_cast<double>(kept), last - kPoint);
    return result > format.largest ? std::numeric_limits<double>::infinity() : result;
  }

  Words words_{};
};

/// A reproducible sum or mean as reproducible.h and docs/reproducible.md define it: each addend is rounded to a
/// multiple of the last unit that is kept beside the largest, then everything is exact, then rounded.
inline double reproducible(std::span<const double> values, const FloatFormat& format, std::uint32_t divisor) {
  double special = 0;
  double largest = 0;
  for (const double value : values) {
    special += std::isfinite(value) ? 0 : value;
    largest = std::max(largest, std::isfinite(value) ? std::fabs(value) : 0);
  }
  if (special != 0) {
    return std::isnan(special) ? std::numeric_limits<double>::quiet_NaN() : special;
  }
  const int exponent = std::max(largest == 0 ? -1021 : std::ilogb(largest), -1021);
  const int digits = format.bits == 53 ? 3 : 2;
  const int last = (exponent + 1021) / 32 * 32 - 1020 - 32 * (digits - 1);
  Exact sum;
  for (const double value : values) {
    sum.add(std::ldexp(std::nearbyint(std::ldexp(value, -last)), last));
  }
  return sum.rounded(format, divisor);
}

}  // namespace tutti::kernels::reference
