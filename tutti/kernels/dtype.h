#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tutti::kernels {

/// The types that gradients, and what travels with them, come in.
enum class DType : std::uint8_t {
  float64,
  float32,
  float16,
  bfloat16,
  float8_e4m3fn,
  float8_e5m2,
  int64,
  int32,
  int16,
  int8,
  uint64,
  uint32,
  uint16,
  uint8,
  boolean,
  complex64,
  complex128,
};

inline constexpr int kDTypes = 17;

std::size_t size_of(DType dtype);
std::string_view to_string(DType dtype);

}  // namespace tutti::kernels
