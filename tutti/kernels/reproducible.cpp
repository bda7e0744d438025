#include "tutti/kernels/reproducible.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

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

/// So many elements' accumulators stay in the first cache.
constexpr std::size_t kTile = 256;

template <class Pointer>
void move_on(std::vector<Pointer>& buffers, std::size_t bytes) {
  for (auto& buffer : buffers) {
    buffer += bytes;
  }
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

void round_all(DType dtype, const SumParts& parts, std::span<std::byte* const> outs, std::size_t count,
               RoundOptions options) {
  if (parts.sums.empty() && !parts.addends.empty()) {
    return reduce_reproducibly({.op = ReduceOp::reproducible_avg, .dtype = dtype, .divisor = options.divisor},
                               {.sources = parts.addends, .outs = outs, .count = count});
  }
  const DType kind = accumulator_of(dtype);
  std::array<std::uint64_t, kTile * 4> tile{};
  auto* const all = reinterpret_cast<std::byte*>(tile.data());
  std::vector<const std::byte*> addends(parts.addends.begin(), parts.addends.end());
  std::vector<const std::byte*> sums(parts.sums.begin(), parts.sums.end());
  std::vector<std::byte*> to(outs.begin(), outs.end());
  for (std::size_t length = 0; count > 0; count -= length) {
    length = std::min(kTile, count);
    tile.fill(0);
    if (!addends.empty()) {
      accumulate(dtype, addends, all, length);
    }
    sums.push_back(all);
    merge_accumulators(kind, {.sources = sums, .outs = {&all, 1}, .count = length});
    sums.pop_back();
    round_accumulators(dtype, all, to, length, options);
    move_on(addends, length * size_of(dtype));
    move_on(sums, length * size_of(kind));
    move_on(to, length * size_of(dtype));
  }
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
