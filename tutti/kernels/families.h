#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tutti/kernels/reduce.h"

/// Inside of this room: the kernels behind `reduce`, one source file for each family of element types. Each runs the
/// best code the processor has.
namespace tutti::kernels {

/// What a kernel reads and writes, as `reduce` was called.
struct Buffers {
  std::span<const std::byte* const> sources;
  std::span<std::byte* const> outs;
  std::size_t count = 0;
};

/// float32, float64: sum, avg, product, min, max, premul_sum.
void reduce_floats(const Reduction& reduction, const Buffers& buffers);
/// float16, bfloat16: the same.
void reduce_halves(const Reduction& reduction, const Buffers& buffers);
/// float8_e4m3fn, float8_e5m2: the same.
void reduce_quarters(const Reduction& reduction, const Buffers& buffers);
/// Integers: sum, product, min, max.
void reduce_integers(const Reduction& reduction, const Buffers& buffers);
/// Bits, counted in bytes: band, bor, bxor.
void reduce_bits(const Reduction& reduction, const Buffers& buffers);
/// bool: everything that can_reduce allows.
void reduce_logical(const Reduction& reduction, const Buffers& buffers);
/// complex64, complex128: product. (The rest is done on their parts, as floats.)
void multiply_complex(const Reduction& reduction, const Buffers& buffers);

/// What is done in a reproducible sum; see reproducible.h.
enum class SumTask : std::uint8_t {
  add,      ///< sources of floats, to the one out of accumulators
  merge,    ///< sources and outs of accumulators
  round,    ///< the one source of accumulators, to outs of floats
  at_once,  ///< sources and outs of floats
};

/// float32 and float64, and their accumulators (by the name of the floats).
void sum_floats(SumTask task, DType dtype, std::size_t divisor, const Buffers& buffers);
/// float16, bfloat16, float8_e4m3fn, float8_e5m2: all but `merge`.
void sum_small_floats(SumTask task, DType dtype, std::size_t divisor, const Buffers& buffers);

/// Floats: reproducible_sum, reproducible_avg.
void reduce_reproducibly(const Reduction& reduction, const Buffers& buffers);
/// Accumulators: sum.
void merge_accumulators(DType dtype, const Buffers& buffers);

}  // namespace tutti::kernels
