#include "tutti/kernels/reduce.h"

#include <array>

#include <fmt/format.h>

#include "tutti/kernels/families.h"

namespace tutti::kernels {
namespace {

bool is_complex(DType dtype) { return dtype == DType::complex64 || dtype == DType::complex128; }
bool is_float(DType dtype) { return dtype <= DType::float8_e5m2; }
bool is_accumulator(DType dtype) { return dtype == DType::accumulator32 || dtype == DType::accumulator64; }
bool is_bitwise(ReduceOp op) { return op == ReduceOp::band || op == ReduceOp::bor || op == ReduceOp::bxor; }

/// All but the product is done on the parts.
void reduce_complex(const Reduction& reduction, const Buffers& buffers) {
  if (reduction.op == ReduceOp::product) {
    return multiply_complex(reduction, buffers);
  }
  Reduction parts = reduction;
  parts.dtype = reduction.dtype == DType::complex64 ? DType::float32 : DType::float64;
  const Buffers of_parts{.sources = buffers.sources, .outs = buffers.outs, .count = 2 * buffers.count};
  is_reproducible(reduction.op) ? reduce_reproducibly(parts, of_parts) : reduce_floats(parts, of_parts);
}

void reduce_whole_numbers(const Reduction& reduction, const Buffers& buffers) {
  if (!is_bitwise(reduction.op)) {
    return reduce_integers(reduction, buffers);
  }
  const std::size_t bytes = buffers.count * size_of(reduction.dtype);
  reduce_bits(reduction, {.sources = buffers.sources, .outs = buffers.outs, .count = bytes});
}

}  // namespace

std::string_view to_string(ReduceOp op) {
  constexpr std::array<std::string_view, kReduceOps> kNames{"sum",
                                                            "avg",
                                                            "product",
                                                            "min",
                                                            "max",
                                                            "band",
                                                            "bor",
                                                            "bxor",
                                                            "premul_sum",
                                                            "reproducible_sum",
                                                            "reproducible_avg"};
  return kNames[static_cast<std::size_t>(op)];
}

Status can_reduce(ReduceOp op, DType dtype) {
  const auto refuse = [&](std::string_view why) {
    return Error{Code::unsupported, fmt::format("{} of {}: {}", to_string(op), to_string(dtype), why)};
  };
  if (is_accumulator(dtype)) {
    return op == ReduceOp::sum ? Status() : refuse("accumulators can only be merged, which is their sum");
  }
  if (op == ReduceOp::reproducible_sum && !is_float(dtype) && !is_complex(dtype)) {
    return refuse("sums of whole numbers are reproducible as they are; use sum");
  }
  if ((op == ReduceOp::avg || op == ReduceOp::reproducible_avg) && !is_float(dtype) && !is_complex(dtype)) {
    return refuse("the mean of whole numbers is none; sum and divide, or use a float type");
  }
  if (op == ReduceOp::premul_sum && !is_float(dtype) && !is_complex(dtype)) {
    return refuse("a factor would make whole numbers fractions; multiply before and use sum, or use a float type");
  }
  if (is_bitwise(op) && (is_float(dtype) || is_complex(dtype))) {
    return refuse("bits of floats are not combined; use an integer type or bool");
  }
  if ((op == ReduceOp::min || op == ReduceOp::max) && is_complex(dtype)) {
    return refuse("complex numbers have no order; reduce their real and imaginary parts (view_as_real)");
  }
  return {};
}

void reduce(const Reduction& reduction, std::span<const std::byte* const> sources, std::span<std::byte* const> outs,
            std::size_t count) {
  require(!sources.empty(), "a reduction needs at least one source");
  require(reduction.op != ReduceOp::premul_sum || reduction.factors.size() == sources.size(),
          "premul_sum needs one factor for each source");
  const Buffers buffers{.sources = sources, .outs = outs, .count = count};
  if (is_reproducible(reduction.op) && is_float(reduction.dtype)) {
    return reduce_reproducibly(reduction, buffers);
  }
  switch (reduction.dtype) {
    case DType::float64:
    case DType::float32: return reduce_floats(reduction, buffers);
    case DType::float16:
    case DType::bfloat16: return reduce_halves(reduction, buffers);
    case DType::float8_e4m3fn:
    case DType::float8_e5m2: return reduce_quarters(reduction, buffers);
    case DType::int64:
    case DType::int32:
    case DType::int16:
    case DType::int8:
    case DType::uint64:
    case DType::uint32:
    case DType::uint16:
    case DType::uint8: return reduce_whole_numbers(reduction, buffers);
    case DType::boolean: return reduce_logical(reduction, buffers);
    case DType::complex64:
    case DType::complex128: return reduce_complex(reduction, buffers);
    case DType::accumulator32:
    case DType::accumulator64: return merge_accumulators(reduction.dtype, buffers);
  }
}

}  // namespace tutti::kernels
