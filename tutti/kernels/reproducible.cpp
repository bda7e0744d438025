#include "tutti/kernels/reproducible.h"

#include <array>

#include "tutti/base/error.h"
#include "tutti/kernels/families.h"

namespace tutti::kernels {
namespace {

void run(SumTask task, DType dtype, std::size_t divisor, const Buffers& buffers) {
  require(dtype <= DType::float8_e5m2, "reproducible sums are of floats");
  require(buffers.sources.size() <= kMostAddends, "more addends than a reproducible sum can hold");
  require(divisor >= 1 && divisor <= kMostDivisor, "the divisor of a reproducible mean is between 1 and 2^24");
  dtype <= DType::float32 ? sum_floats(task, dtype, divisor, buffers) : sum_small_floats(task, dtype, divisor, buffers);
}

}  // namespace

DType accumulator_of(DType dtype) {
  return dtype == DType::float64 || dtype == DType::complex128 ? DType::accumulator64 : DType::accumulator32;
}

void accumulate(DType dtype, std::span<const std::byte* const> sources, std::byte* sums, std::size_t count) {
  require(!sources.empty(), "a sum needs at least one source");
  run(SumTask::add, dtype, 1, {.sources = sources, .outs = {&sums, 1}, .count = count});
}

void round_accumulators(DType dtype, const std::byte* sums, std::span<std::byte* const> outs, std::size_t count,
                        RoundOptions options) {
  run(SumTask::round, dtype, options.divisor, {.sources = {&sums, 1}, .outs = outs, .count = count});
}

void reduce_reproducibly(const Reduction& reduction, const Buffers& buffers) {
  const std::size_t by = reduction.divisor == 0 ? buffers.sources.size() : reduction.divisor;
  run(SumTask::at_once, reduction.dtype, reduction.op == ReduceOp::reproducible_avg ? by : 1, buffers);
}

void merge_accumulators(DType dtype, const Buffers& buffers) {
  const DType floats = dtype == DType::accumulator32 ? DType::float32 : DType::float64;
  run(SumTask::merge, floats, 1, buffers);
}

}  // namespace tutti::kernels
