#include "tutti/comm/dtype.h"

#include <fmt/format.h>

namespace tutti {
namespace {

/// c10d has no word for a sum that is reproducible: it goes as a sum with this attached. Other backends do not look.
struct Reproducible : c10d::_SupplementBase {};

/// Nor for bytes that are accumulators.
struct ReadAs : c10d::_SupplementBase {
  explicit ReadAs(kernels::DType type) : dtype(type) {}
  kernels::DType dtype;
};

bool is_reproducible(const c10d::ReduceOp& op) {
  return dynamic_cast<const Reproducible*>(op.supplement_.get()) != nullptr;
}

c10d::ReduceOp reproducible(c10d::ReduceOp::RedOpType type) {
  c10d::ReduceOp op(type);
  op.supplement_ = c10::make_intrusive<Reproducible>();
  return op;
}

}  // namespace

Result<kernels::DType> to_dtype(c10::ScalarType type) {
  using kernels::DType;
  switch (type) {
    case c10::ScalarType::Double: return DType::float64;
    case c10::ScalarType::Float: return DType::float32;
    case c10::ScalarType::Half: return DType::float16;
    case c10::ScalarType::BFloat16: return DType::bfloat16;
    case c10::ScalarType::Float8_e4m3fn: return DType::float8_e4m3fn;
    case c10::ScalarType::Float8_e5m2: return DType::float8_e5m2;
    case c10::ScalarType::Long: return DType::int64;
    case c10::ScalarType::Int: return DType::int32;
    case c10::ScalarType::Short: return DType::int16;
    case c10::ScalarType::Char: return DType::int8;
    case c10::ScalarType::UInt64: return DType::uint64;
    case c10::ScalarType::UInt32: return DType::uint32;
    case c10::ScalarType::UInt16: return DType::uint16;
    case c10::ScalarType::Byte: return DType::uint8;
    case c10::ScalarType::Bool: return DType::boolean;
    case c10::ScalarType::ComplexFloat: return DType::complex64;
    case c10::ScalarType::ComplexDouble: return DType::complex128;
    default:
      return Error{Code::unsupported,
                   fmt::format("tensors of type {} cannot be communicated; convert them, or view them as bytes (uint8)",
                               c10::toString(type))};
  }
}

Result<Reduce> to_reduce(const c10d::ReduceOp& op) {
  switch (op.op_) {
    case c10d::ReduceOp::SUM:
      if (const auto* read_as = dynamic_cast<const ReadAs*>(op.supplement_.get())) {
        Reduce reduce(ReduceOp::sum);
        reduce.read_as = read_as->dtype;
        return reduce;
      }
      return Reduce(is_reproducible(op) ? ReduceOp::reproducible_sum : ReduceOp::sum);
    case c10d::ReduceOp::AVG: return Reduce(is_reproducible(op) ? ReduceOp::reproducible_avg : ReduceOp::avg);
    case c10d::ReduceOp::PRODUCT: return Reduce(ReduceOp::product);
    case c10d::ReduceOp::MIN: return Reduce(ReduceOp::min);
    case c10d::ReduceOp::MAX: return Reduce(ReduceOp::max);
    case c10d::ReduceOp::BAND: return Reduce(ReduceOp::band);
    case c10d::ReduceOp::BOR: return Reduce(ReduceOp::bor);
    case c10d::ReduceOp::BXOR: return Reduce(ReduceOp::bxor);
    case c10d::ReduceOp::PREMUL_SUM:
      if (const auto* supplement = dynamic_cast<const c10d::NCCLPreMulSumSupplement*>(op.supplement_.get())) {
        const auto& tensor = supplement->tensor_factor;
        return premul_sum(tensor.defined() ? tensor.item<double>() : supplement->double_factor);
      }
      return Error{Code::invalid_argument, "a pre-multiplied sum was asked for without its factor"};
    case c10d::ReduceOp::UNUSED: break;
  }
  return Error{Code::unsupported, "this reduce operation is not supported; multiply before and use sum"};
}

c10d::ReduceOp to_c10d(const Reduce& reduce) {
  if (reduce.read_as) {
    c10d::ReduceOp op(c10d::ReduceOp::SUM);
    op.supplement_ = c10::make_intrusive<ReadAs>(*reduce.read_as);
    return op;
  }
  switch (reduce.op) {
    case ReduceOp::sum: return c10d::ReduceOp::SUM;
    case ReduceOp::avg: return c10d::ReduceOp::AVG;
    case ReduceOp::product: return c10d::ReduceOp::PRODUCT;
    case ReduceOp::min: return c10d::ReduceOp::MIN;
    case ReduceOp::max: return c10d::ReduceOp::MAX;
    case ReduceOp::band: return c10d::ReduceOp::BAND;
    case ReduceOp::bor: return c10d::ReduceOp::BOR;
    case ReduceOp::bxor: return c10d::ReduceOp::BXOR;
    case ReduceOp::premul_sum: {
      // By hand, and by its older name: c10d has renamed its helper.
      c10d::ReduceOp op;
      op.op_ = c10d::ReduceOp::PREMUL_SUM;
      op.supplement_ = c10::make_intrusive<c10d::NCCLPreMulSumSupplement>(reduce.factor);
      return op;
    }
    case ReduceOp::reproducible_sum: return reproducible(c10d::ReduceOp::SUM);
    case ReduceOp::reproducible_avg: return reproducible(c10d::ReduceOp::AVG);
  }
  return c10d::ReduceOp::SUM;
}

}  // namespace tutti
