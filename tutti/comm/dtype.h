#pragma once

#include <c10/core/ScalarType.h>
#include <torch/csrc/distributed/c10d/Types.hpp>

#include "tutti/base/error.h"
#include "tutti/kernels/dtype.h"
#include "tutti/kernels/reduce.h"

namespace tutti {

using kernels::ReduceOp;

/// From LibTorch's types to ours; the error names the type and says what to do.
Result<kernels::DType> to_dtype(c10::ScalarType type);

/// From c10d's operations to ours and back.
Result<ReduceOp> to_reduce_op(const c10d::ReduceOp& op);
c10d::ReduceOp to_c10d(ReduceOp op);

}  // namespace tutti
