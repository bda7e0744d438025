// What a reproducible sum costs beside a plain one: the two in turn over the same buffers, one thread.
//
//   sums [--size 25Mi] [--rounds 41]
//
// "alike" are values as gradients of microbatches are, "anything" have exponents from all over float32's range
// (float16: its own), so that few sums of more than two are quick.

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "bench/measure.h"
#include "bench/options.h"
#include "tutti/kernels/reduce.h"
#include "tutti/kernels/small_float.h"

namespace {

using tutti::kernels::DType;
using tutti::kernels::ReduceOp;

struct Case {
  DType dtype;
  std::size_t sources;
  bool alike;
};

using Buffers = std::vector<std::vector<double>>;  // doubles only so that they are aligned for every type

void store(DType dtype, float value, std::byte* to) {
  const auto put = [to](auto stored) { std::memcpy(to, &stored, sizeof(stored)); };
  switch (dtype) {
    case DType::float64: return put(static_cast<double>(value));
    case DType::float32: return put(value);
    case DType::float16: return put(tutti::kernels::narrow<tutti::kernels::Float16>(value));
    default: return put(tutti::kernels::narrow<tutti::kernels::BFloat16>(value));
  }
}

Buffers make_buffers(const Case& which, std::size_t bytes) {
  std::mt19937 random(17);
  std::normal_distribution<float> normal;
  const unsigned spread = which.dtype == DType::float16 ? 24 : 200;
  Buffers buffers(which.sources + 1, std::vector<double>(bytes / sizeof(double)));
  for (auto& buffer : buffers) {
    auto* const data = reinterpret_cast<std::byte*>(buffer.data());
    for (std::size_t at = 0; at < bytes; at += size_of(which.dtype)) {
      const int exponent = which.alike ? 0 : static_cast<int>(spread / 2) - static_cast<int>(random() % spread);
      store(which.dtype, std::ldexp(normal(random), exponent), data + at);
    }
  }
  return buffers;
}

/// Microseconds of one reduction into the last buffer.
double time_one(ReduceOp op, DType dtype, Buffers& buffers) {
  std::vector<const std::byte*> sources;
  for (auto& buffer : buffers) {
    sources.push_back(reinterpret_cast<const std::byte*>(buffer.data()));
  }
  sources.pop_back();
  const std::array outs{reinterpret_cast<std::byte*>(buffers.back().data())};
  const std::size_t count = count_of(dtype, buffers.back().size() * sizeof(double));
  const auto start = bench::Clock::now();
  tutti::kernels::reduce({.op = op, .dtype = dtype}, sources, outs, count);
  return bench::microseconds_since(start);
}

void compare(const Case& which, std::size_t bytes, std::size_t rounds) {
  auto buffers = make_buffers(which, bytes);
  std::vector<double> plain;
  std::vector<double> reproducible;
  for (std::size_t round = 0; round < rounds; ++round) {
    plain.push_back(time_one(ReduceOp::sum, which.dtype, buffers));
    reproducible.push_back(time_one(ReduceOp::reproducible_sum, which.dtype, buffers));
  }
  const double before = bench::summarize(plain).median_us;
  const double after = bench::summarize(reproducible).median_us;
  std::printf("| %s | %zu | %s | %.2f | %.2f | %.2f |\n", std::string(to_string(which.dtype)).c_str(), which.sources,
              which.alike ? "alike" : "anything", before / 1000, after / 1000, after / before);
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t bytes = 25 << 20;
  std::size_t rounds = 41;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view option = argv[i];
    if (option == "--size") {
      bytes = bench::parse_size(argv[i + 1]);
    } else if (option == "--rounds") {
      rounds = bench::number_of<std::size_t>(argv[i + 1], option);
    } else {
      bench::fail("there are --size and --rounds");
    }
  }
  std::printf("| type | sources | values | sum, ms | reproducible, ms | times |\n|---|---|---|---|---|---|\n");
  for (const DType dtype : {DType::float32, DType::float64, DType::bfloat16, DType::float16}) {
    for (const std::size_t sources : {2U, 8U}) {
      for (const bool alike : {true, false}) {
        compare({.dtype = dtype, .sources = sources, .alike = alike}, bytes, rounds);
      }
    }
  }
}
