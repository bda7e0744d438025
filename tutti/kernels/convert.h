#pragma once

#include <cstddef>

#include "tutti/kernels/dtype.h"

namespace tutti::kernels {

/// Whether elements are added in float32 and rounded when they are stored: 16- and 8-bit floats.
constexpr bool is_small_float(DType dtype) {
  return dtype == DType::float16 || dtype == DType::bfloat16 || dtype == DType::float8_e4m3fn ||
         dtype == DType::float8_e5m2;
}

/// Small floats as float32: exact, but a NaN becomes a NaN. Buffers do not overlap. Any thread.
void to_float32(DType dtype, const std::byte* from, float* to, std::size_t count);

/// float32 as small floats, rounded to nearest even, with the bits that `reduce` stores.
void from_float32(DType dtype, const float* from, std::byte* to, std::size_t count);

}  // namespace tutti::kernels
