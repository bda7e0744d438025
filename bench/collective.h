#pragma once
// What goes into a collective and what must come out of it, for every operation and element type of the benchmark.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <new>
#include <string>
#include <string_view>

#include "bench/options.h"

namespace bench {

enum class Op { all_reduce, broadcast, all_gather, reduce_scatter, all_to_all, barrier };
enum class Dtype { float32, float64, int32, bfloat16 };

inline Op parse_op(std::string_view name) {
  constexpr std::string_view kNames[] = {"all_reduce",     "broadcast",  "all_gather",
                                         "reduce_scatter", "all_to_all", "barrier"};
  for (std::size_t i = 0; i < std::size(kNames); ++i) {
    if (kNames[i] == name) {
      return static_cast<Op>(i);
    }
  }
  fail("no operation '" + std::string(name) +
       "'; there are all_reduce, broadcast, all_gather, reduce_scatter, all_to_all, barrier");
}

inline Dtype parse_dtype(std::string_view name) {
  constexpr std::string_view kNames[] = {"float32", "float64", "int32", "bfloat16"};
  for (std::size_t i = 0; i < std::size(kNames); ++i) {
    if (kNames[i] == name) {
      return static_cast<Dtype>(i);
    }
  }
  fail("no dtype '" + std::string(name) + "'; there are float32, float64, int32, bfloat16");
}

inline std::size_t element_bytes(Dtype dtype) {
  switch (dtype) {
    case Dtype::float64: return 8;
    case Dtype::bfloat16: return 2;
    default: return 4;
  }
}

/// How many elements one rank puts in and takes out. `part` is what one rank contributes to, or receives from, another.
struct Shape {
  Op op;
  Dtype dtype;
  std::size_t ranks;
  std::size_t part;  // elements
  [[nodiscard]] bool in_place() const { return op == Op::all_reduce || op == Op::broadcast; }
  [[nodiscard]] std::size_t input() const {
    return op == Op::reduce_scatter || op == Op::all_to_all ? part * ranks : part;
  }
  [[nodiscard]] std::size_t output() const {
    return op == Op::all_gather || op == Op::all_to_all ? part * ranks : part;
  }
  /// The size to report: of whichever side is larger.
  [[nodiscard]] std::size_t bytes() const { return std::max(input(), output()) * element_bytes(dtype); }
};

/// Rounded down to whole elements for every rank, but never to none (a barrier has none).
inline Shape shape_of(Op op, Dtype dtype, std::size_t ranks, std::size_t bytes) {
  const bool parted = op == Op::all_gather || op == Op::reduce_scatter || op == Op::all_to_all;
  const std::size_t unit = element_bytes(dtype) * (parted ? ranks : 1);
  const std::size_t part = op == Op::barrier ? 0 : std::max<std::size_t>(bytes / unit, 1);
  return {op, dtype, ranks, part};
}

/// Small enough that sums of 32 ranks are exact even in bfloat16.
inline int input_value(std::size_t rank, std::size_t index) { return static_cast<int>(index % 7 + rank % 3); }

inline int expected_value(const Shape& shape, std::size_t rank, std::size_t index) {
  const auto sum_at = [&](std::size_t at) {
    int sum = 0;
    for (std::size_t r = 0; r < shape.ranks; ++r) {
      sum += input_value(r, at);
    }
    return sum;
  };
  switch (shape.op) {
    case Op::all_reduce: return sum_at(index);
    case Op::reduce_scatter: return sum_at(rank * shape.part + index);
    case Op::broadcast: return input_value(0, index);
    case Op::all_gather: return input_value(index / shape.part, index % shape.part);
    case Op::all_to_all: return input_value(index / shape.part, rank * shape.part + index % shape.part);
    case Op::barrier: break;
  }
  return 0;
}

inline void store_value(Dtype dtype, void* memory, std::size_t index, int value) {
  switch (dtype) {
    case Dtype::float32: static_cast<float*>(memory)[index] = static_cast<float>(value); return;
    case Dtype::float64: static_cast<double*>(memory)[index] = value; return;
    case Dtype::int32: static_cast<std::int32_t*>(memory)[index] = value; return;
    case Dtype::bfloat16:  // small integers lose nothing when the lower half is cut off
      static_cast<std::uint16_t*>(memory)[index] =
          static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(static_cast<float>(value)) >> 16);
  }
}

inline double load_value(Dtype dtype, const void* memory, std::size_t index) {
  switch (dtype) {
    case Dtype::float32: return static_cast<const float*>(memory)[index];
    case Dtype::float64: return static_cast<const double*>(memory)[index];
    case Dtype::int32: return static_cast<const std::int32_t*>(memory)[index];
    case Dtype::bfloat16:
      return std::bit_cast<float>(static_cast<std::uint32_t>(static_cast<const std::uint16_t*>(memory)[index]) << 16);
  }
  return 0;
}

inline void fill(const Shape& shape, std::size_t rank, void* input) {
  for (std::size_t i = 0; i < shape.input(); ++i) {
    store_value(shape.dtype, input, i, input_value(rank, i));
  }
}

/// Ends the program where an element is wrong: a fast wrong answer is no figure.
inline void check(const Shape& shape, std::size_t rank, const void* output) {
  for (std::size_t i = 0; i < shape.output(); ++i) {
    const double value = load_value(shape.dtype, output, i);
    if (value != expected_value(shape, rank, i)) {
      fail("wrong result on rank " + std::to_string(rank) + ": element " + std::to_string(i) + " is " +
           std::to_string(value) + ", not " + std::to_string(expected_value(shape, rank, i)));
    }
  }
}

/// Zeros in ordinary memory, on pages of its own and touched by the rank that uses it. Sums of zeros stay finite
/// forever.
class Buffer {
 public:
  explicit Buffer(std::size_t bytes) : bytes_(bytes), memory_(new(std::align_val_t{kAlignment}) std::byte[bytes + 1]) {
    clear();
  }
  [[nodiscard]] void* data() const { return memory_.get(); }
  void clear() { std::fill_n(memory_.get(), bytes_ + 1, std::byte{0}); }

 private:
  static constexpr std::size_t kAlignment = 4096;
  struct Free {
    void operator()(std::byte* memory) const { operator delete[](memory, std::align_val_t{kAlignment}); }
  };
  std::size_t bytes_;
  std::unique_ptr<std::byte[], Free> memory_;
};

}  // namespace bench
