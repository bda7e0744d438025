#pragma once

#include <cstddef>
#include <span>

#include "tutti/kernels/dtype.h"

/// Sums of floats whose bits depend on the addends and on nothing else: not on their order, on how they are divided
/// over ranks, threads or calls, on the algorithm, the chunks, or the processor's vectors. docs/reproducible.md says
/// how.
///
/// A sum under way is an accumulator: plain bytes that can be cut, copied and sent like other elements (their types are
/// DType::accumulator32 and accumulator64, and `reduce` merges them with `sum`). All bytes zero: nothing added yet.
///
///   accumulate(DType::float32, gradients, sums, count);                    // every rank
///   reduce({.op = ReduceOp::sum, .dtype = DType::accumulator32}, ...);     // in any order, any number of times
///   round_accumulators(DType::float32, sums, outs, count, {.divisor = n}); // once
///
/// gives the same bits as reduce({.op = ReduceOp::reproducible_avg, ...}) with all addends, which needs no
/// accumulators.
/// - With S the exact sum of n addends, the result is S + e, rounded once (to nearest even) after the division; |e| is
/// at
///   most n * 2^-32 of the largest addend's magnitude, for float64 n * 2^-64. Sums of float16 and float8 are exact: e =
///   0.
/// - Only the result can overflow, to infinity (float8_e4m3fn: to its NaN, with the sum's sign).
/// - A NaN, or infinities of both signs: the type's positive quiet NaN. Infinities of one sign: that one.
/// - A sum that is zero is +0, also one of negative zeros. (A negative mean that is too small is -0.)
/// Nothing here blocks or fails; any thread.
namespace tutti::kernels {

/// More addends than this could overflow a digit. Whoever adds over several calls or ranks has to count; one call with
/// more ends the program.
inline constexpr std::size_t kMostAddends = std::size_t{1} << 19;
inline constexpr std::size_t kMostDivisor = std::size_t{1} << 24;

/// The accumulator of a float type; of a complex one, that of its parts, of which there are twice as many.
DType accumulator_of(DType dtype);

/// sums[i] += sources[0][i] + sources[1][i] + ... for `count` elements of a float type, aligned for it; accumulators
/// are aligned to 8 bytes. At least one source.
void accumulate(DType dtype, std::span<const std::byte* const> sources, std::byte* sums, std::size_t count);

struct RoundOptions {
  std::size_t divisor = 1;  ///< from 1 to kMostDivisor; divided before the rounding
};

/// outs[k][i] = sums[i] as a float type, for every k. The accumulators stay as they are.
void round_accumulators(DType dtype, const std::byte* sums, std::span<std::byte* const> outs, std::size_t count,
                        RoundOptions options = {});

/// Any number of addends, and of accumulators that others were added to.
struct SumParts {
  std::span<const std::byte* const> addends = {};
  std::span<const std::byte* const> sums = {};
};

/// sums[i] = all of these together; nothing at all is zero.
void add_all(DType dtype, const SumParts& parts, std::byte* sums, std::size_t count);

/// The same, rounded. An out may be one of the addends.
void round_all(DType dtype, const SumParts& parts, std::span<std::byte* const> outs, std::size_t count,
               RoundOptions options = {});

}  // namespace tutti::kernels
