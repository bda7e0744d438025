#pragma once

#include <optional>

#include <c10/core/ScalarType.h>
#include <torch/csrc/distributed/c10d/Types.hpp>

#include "tutti/base/error.h"
#include "tutti/kernels/dtype.h"
#include "tutti/kernels/reduce.h"

namespace tutti {

using kernels::ReduceOp;

/// How values of several ranks become one. A plain ReduceOp is one, too.
struct Reduce {
  Reduce(ReduceOp reduce_op) : op(reduce_op) {}
  Reduce(ReduceOp reduce_op, double own_factor) : op(reduce_op), factor(own_factor) {}

  ReduceOp op;
  double factor = 1.0;  ///< for premul_sum: this rank's; each may have another
  /// What the bytes of a byte tensor are, where that is no type of LibTorch's: accumulators of reproducible sums.
  std::optional<kernels::DType> read_as = std::nullopt;
};

/// The sum of what every rank has, each multiplied with its own factor before.
inline Reduce premul_sum(double factor) { return {ReduceOp::premul_sum, factor}; }

/// From LibTorch's types to ours; the error names the type and says what to do.
Result<kernels::DType> to_dtype(c10::ScalarType type);

/// From c10d's operations to ours and back.
Result<Reduce> to_reduce(const c10d::ReduceOp& op);
c10d::ReduceOp to_c10d(const Reduce& reduce);

}  // namespace tutti
