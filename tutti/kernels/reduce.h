#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "tutti/base/error.h"
#include "tutti/kernels/dtype.h"

namespace tutti::kernels {

enum class ReduceOp : std::uint8_t {
  sum,
  avg,
  product,
  min,
  max,
  band,
  bor,
  bxor,
  premul_sum,
  reproducible_sum,
  reproducible_avg,
};

inline constexpr int kReduceOps = 11;

std::string_view to_string(ReduceOp op);

constexpr bool is_reproducible(ReduceOp op) {
  return op == ReduceOp::reproducible_sum || op == ReduceOp::reproducible_avg;
}

/// Whether the operation means anything for the type; the error says why not and what to do instead.
Status can_reduce(ReduceOp op, DType dtype);

/// What is computed from the sources. Operation and type must pass `can_reduce`.
struct Reduction {
  ReduceOp op = ReduceOp::sum;
  DType dtype = DType::float32;
  /// For premul_sum: what each source is multiplied with before it is added; one per source.
  std::span<const double> factors = {};
  /// For avg and reproducible_avg: by what the sum is divided; 0: by the number of sources.
  std::size_t divisor = 0;
};

/// outs[k][i] = sources[0][i] op sources[1][i] op ..., in that order, for every k. The bits depend on the sources'
/// values alone: not on who computes them, the processor's vectors, addresses, or how a range is cut into pieces.
/// - `avg` divides by the divisor (a division, rounded once). `premul_sum` multiplies, rounds, then adds.
/// - `reproducible_sum` and `reproducible_avg` are what reproducible.h says, all sources at once: the same bits as
/// adding
///   them to accumulators in any order. A `sum` of accumulators merges them; nothing else is done to those.
/// - 16- and 8-bit floats are computed in float32 and rounded once.
/// - A NaN comes out as the type's positive quiet one (but float8_e4m3fn's overflow, a NaN too, keeps its sign).
/// - `min` and `max` keep NaN; of equal zeros the last one counts. Integers wrap around; bool is logical.
/// There is at least one source; every buffer holds `count` elements, aligned for their type. An out may be one of the
/// sources (the same address), and never overlaps one in part. Never blocks or fails; any thread.
void reduce(const Reduction& reduction, std::span<const std::byte* const> sources, std::span<std::byte* const> outs,
            std::size_t count);

}  // namespace tutti::kernels
