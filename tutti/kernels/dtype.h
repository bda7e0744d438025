#pragma once

#include <bit>
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
  accumulator32,  ///< reproducible sums of float32 and of smaller floats, on their way; see reproducible.h
  accumulator64,  ///< of float64
};

inline constexpr int kDTypes = 19;

// Not inside the function, which would build it anew at every call.
inline constexpr std::uint8_t kBytesOf[kDTypes] = {8, 4, 2, 2, 1, 1, 8, 4, 2, 1, 8, 4, 2, 1, 1, 8, 16, 16, 32};

constexpr std::size_t size_of(DType dtype) { return kBytesOf[static_cast<std::size_t>(dtype)]; }
/// How many elements so many bytes are. (By a shift: a division takes longer than adding two numbers of each of two
/// ranks.)
constexpr std::size_t count_of(DType dtype, std::size_t bytes) { return bytes >> std::countr_zero(size_of(dtype)); }
/// Whether so many bytes are a whole number of elements.
constexpr bool is_whole(DType dtype, std::size_t bytes) { return (bytes & (size_of(dtype) - 1)) == 0; }

std::string_view to_string(DType dtype);

}  // namespace tutti::kernels
