#include "tutti/kernels/reproducible.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
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

/// `visit(parts of the tile, where it begins, its length)`
template <class Visit>
void for_every_tile(DType dtype, const SumParts& parts, std::size_t count, Visit&& visit) {
  std::vector<const std::byte*> addends(parts.addends.begin(), parts.addends.end());
  std::vector<const std::byte*> sums(parts.sums.begin(), parts.sums.end());
  for (std::size_t at = 0, length = 0; at < count; at += length) {
    length = std::min(kTile, count - at);
    visit(SumParts{.addends = addends, .sums = sums}, at, length);
    move_on(addends, length * size_of(dtype));
    move_on(sums, length * size_of(accumulator_of(dtype)));
  }
}

void add_tile(DType dtype, const SumParts& parts, std::byte* sums, std::size_t length) {
  const DType kind = accumulator_of(dtype);
  std::memset(sums, 0, length * size_of(kind));
  if (!parts.addends.empty()) {
    accumulate(dtype, parts.addends, sums, length);
  }
  if (!parts.sums.empty()) {
    std::vector<const std::byte*> sources(parts.sums.begin(), parts.sums.end());
    sources.push_back(sums);
    merge_accumulators(kind, {.sources = sources, .outs = {&sums, 1}, .count = length});
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

void add_all(DType dtype, const SumParts& parts, std::byte* sums, std::size_t count) {
  for_every_tile(dtype, parts, count, [&](const SumParts& tile, std::size_t at, std::size_t length) {
    add_tile(dtype, tile, sums + at * size_of(accumulator_of(dtype)), length);
  });
}

void round_all(DType dtype, const SumParts& parts, std::span<std::byte* const> outs, std::size_t count,
               RoundOptions options) {
  require(options.divisor >= 1, "the divisor of a reproducible mean is between 1 and 2^24");
  if (parts.sums.empty() && !parts.addends.empty()) {
    return reduce_reproducibly({.op = ReduceOp::reproducible_avg, .dtype = dtype, .divisor = options.divisor},
                               {.sources = parts.addends, .outs = outs, .count = count});
  }
  std::array<std::uint64_t, kTile * 4> sums{};
  auto* const all = reinterpret_cast<std::byte*>(sums.data());
  std::vector<std::byte*> to(outs.begin(), outs.end());
  for_every_tile(dtype, parts, count, [&](const SumParts& tile, std::size_t /*at*/, std::size_t length) {
    add_tile(dtype, tile, all, length);
    round_accumulators(dtype, all, to, length, options);
    move_on(to, length * size_of(dtype));
  });
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
