#pragma once

#include <cstdint>

namespace tutti::kernels {

/// Floats of 16 and 8 bits, as storage: they are widened to float32, computed there, and rounded once to nearest even.
struct Float16 {
  std::uint16_t bits;
};
struct BFloat16 {
  std::uint16_t bits;
};
struct Float8E4M3 {
  std::uint8_t bits;
};  ///< no infinities; one NaN for each sign; largest is 448
struct Float8E5M2 {
  std::uint8_t bits;
};

float widen(Float16 value);
float widen(BFloat16 value);
float widen(Float8E4M3 value);
float widen(Float8E5M2 value);

/// Overflow gives infinity, in e4m3 (which has none) NaN, as PyTorch does.
template <class Small>
Small narrow(float value);

}  // namespace tutti::kernels
