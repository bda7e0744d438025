#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "tutti/base/error.h"
#include "tutti/kernels/dtype.h"

namespace tutti::kernels {

enum class ReduceOp : std::uint8_t { sum, avg, product, min, max, band, bor, bxor };

inline constexpr int kReduceOps = 8;

std::string_view to_string(ReduceOp op);

/// Whether the operation means anything for the type; the error says why not and what to do instead.
Status can_reduce(ReduceOp op, DType dtype);

/// out[i] = sources[0][i] op sources[1][i] op ..., in that order, so the bits do not depend on who computes them.
/// `avg` divides by the number of sources. 16- and 8-bit floats are computed in float32 and rounded once; min and max
/// keep NaN; bool counts as logical. `out` may be one of the sources. Pure; any thread.
/// The operation and type must pass `can_reduce`, and there is at least one source.
void reduce(ReduceOp op, DType dtype, std::span<const std::byte* const> sources, std::byte* out, std::size_t count);

}  // namespace tutti::kernels
