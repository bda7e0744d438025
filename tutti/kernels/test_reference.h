#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <type_traits>
#include <vector>

#include "tutti/kernels/reduce.h"
#include "tutti/kernels/small_float.h"
#include "tutti/kernels/test_exact.h"

/// What `reduce` has to compute, one element after the other, as its header says it: for tests only.
namespace tutti::kernels::reference {

struct Boolean {
  std::uint8_t byte;
};

/// As in memory: the code of a bin from bit 57 on, added to the first digit; the other digits; zeros.
template <std::size_t kDigits>
struct Accumulator {
  std::array<std::uint64_t, kDigits == 2 ? 2 : 4> words;

  [[nodiscard]] std::uint64_t code() const { return (words[0] + (std::uint64_t{1} << 56)) >> 57; }
};
using Accumulator32 = Accumulator<2>;
using Accumulator64 = Accumulator<3>;

template <class T>
concept Summed = std::same_as<T, Accumulator32> || std::same_as<T, Accumulator64>;

template <class T>
concept Small =
    std::same_as<T, Float16> || std::same_as<T, BFloat16> || std::same_as<T, Float8E4M3> || std::same_as<T, Float8E5M2>;

template <class T>
concept Complex = std::same_as<T, std::complex<float>> || std::same_as<T, std::complex<double>>;

/// `visit` is called with a value of the type that a dtype stands for.
template <class F>
void with_type(DType dtype, F&& visit) {
  switch (dtype) {
    case DType::float64: return visit(double{});
    case DType::float32: return visit(float{});
    case DType::float16: return visit(Float16{});
    case DType::bfloat16: return visit(BFloat16{});
    case DType::float8_e4m3fn: return visit(Float8E4M3{});
    case DType::float8_e5m2: return visit(Float8E5M2{});
    case DType::int64: return visit(std::int64_t{});
    case DType::int32: return visit(std::int32_t{});
    case DType::int16: return visit(std::int16_t{});
    case DType::int8: return visit(std::int8_t{});
    case DType::uint64: return visit(std::uint64_t{});
    case DType::uint32: return visit(std::uint32_t{});
    case DType::uint16: return visit(std::uint16_t{});
    case DType::uint8: return visit(std::uint8_t{});
    case DType::boolean: return visit(Boolean{});
    case DType::complex64: return visit(std::complex<float>{});
    case DType::complex128: return visit(std::complex<double>{});
    case DType::accumulator32: return visit(Accumulator32{});
    case DType::accumulator64: return visit(Accumulator64{});
  }
}

template <class T>
constexpr FloatFormat format_of() {
  if constexpr (std::same_as<T, double>) {
    return kFloat64;
  } else if constexpr (std::same_as<T, float>) {
    return kFloat32;
  } else if constexpr (std::same_as<T, Float16>) {
    return kFloat16;
  } else if constexpr (std::same_as<T, BFloat16>) {
    return kBFloat16;
  } else if constexpr (std::same_as<T, Float8E4M3>) {
    return kFloat8E4M3;
  } else {
    return kFloat8E5M2;
  }
}

template <class T>
double reproducible(const Reduction& reduction, const std::vector<T>& values) {
  std::vector<double> wide;
  for (const T value : values) {
    if constexpr (Small<T>) {
      wide.push_back(widen(value));
    } else {
      wide.push_back(value);
    }
  }
  const std::size_t by = reduction.divisor == 0 ? values.size() : reduction.divisor;
  const bool averages = reduction.op == ReduceOp::reproducible_avg;
  return reproducible(wide, format_of<T>(), averages ? static_cast<std::uint32_t>(by) : 1);
}

/// Through memory, so that no compiler makes one instruction of it and the addition that follows.
template <std::floating_point T>
T times(T a, T b) {
  volatile T product = a * b;
  return product;
}

template <std::floating_point T>
T one_nan(T value) {
  return std::isnan(value) ? std::numeric_limits<T>::quiet_NaN() : value;
}

template <std::floating_point T>
T combine(ReduceOp op, T a, T b) {
  switch (op) {
    case ReduceOp::product: return times(a, b);
    case ReduceOp::min: return std::isnan(a) || a < b ? a : b;
    case ReduceOp::max: return std::isnan(a) || a > b ? a : b;
    default: return a + b;
  }
}

template <std::floating_point T>
T reduce_one(const Reduction& reduction, const std::vector<T>& values) {
  if (is_reproducible(reduction.op)) {
    return static_cast<T>(reproducible(reduction, values));
  }
  const auto taken = [&](std::size_t source) {
    const bool multiplies = reduction.op == ReduceOp::premul_sum;
    return multiplies ? times(values[source], static_cast<T>(reduction.factors[source])) : values[source];
  };
  T result = taken(0);
  for (std::size_t source = 1; source < values.size(); ++source) {
    result = combine(reduction.op, result, taken(source));
  }
  return one_nan(reduction.op == ReduceOp::avg ? result / static_cast<T>(values.size()) : result);
}

template <Small T>
T reduce_one(const Reduction& reduction, const std::vector<T>& values) {
  if (is_reproducible(reduction.op)) {
    return narrow<T>(static_cast<float>(reproducible(reduction, values)));
  }
  std::vector<float> wide;
  for (const T value : values) {
    wide.push_back(widen(value));
  }
  return narrow<T>(reduce_one(reduction, wide));
}

template <Complex T>
T reduce_one(const Reduction& reduction, const std::vector<T>& values) {
  using Part = typename T::value_type;
  if (reduction.op == ReduceOp::product) {
    T result = values[0];
    for (std::size_t i = 1; i < values.size(); ++i) {
      const T next = values[i];
      result = T(times(result.real(), next.real()) - times(result.imag(), next.imag()),
                 times(result.real(), next.imag()) + times(result.imag(), next.real()));
    }
    return {one_nan(result.real()), one_nan(result.imag())};
  }
  std::vector<Part> real;
  std::vector<Part> imaginary;
  for (const T value : values) {
    real.push_back(value.real());
    imaginary.push_back(value.imag());
  }
  return {reduce_one(reduction, real), reduce_one(reduction, imaginary)};
}

template <std::integral T>
T reduce_one(const Reduction& reduction, const std::vector<T>& values) {
  T result = values[0];
  for (std::size_t i = 1; i < values.size(); ++i) {
    const auto a = static_cast<std::uint64_t>(result);  // as unsigned numbers, wrapping around is defined
    const auto b = static_cast<std::uint64_t>(values[i]);
    switch (reduction.op) {
      case ReduceOp::product: result = static_cast<T>(a * b); break;
      case ReduceOp::min: result = std::min(result, values[i]); break;
      case ReduceOp::max: result = std::max(result, values[i]); break;
      case ReduceOp::band: result = static_cast<T>(a & b); break;
      case ReduceOp::bor: result = static_cast<T>(a | b); break;
      case ReduceOp::bxor: result = static_cast<T>(a ^ b); break;
      default: result = static_cast<T>(a + b); break;
    }
  }
  return result;
}

/// Digits of the highest code count in full, those of lower ones move down to where they belong, or out.
template <Summed T>
T reduce_one(const Reduction& /*reduction*/, const std::vector<T>& values) {
  constexpr std::size_t kDigits = std::same_as<T, Accumulator32> ? 2 : 3;
  std::uint64_t top = 0;
  for (const T& value : values) {
    top = std::max(top, value.code());
  }
  T result{};
  result.words[0] = top << 57;
  for (T value : values) {
    const std::uint64_t down = top - value.code();
    value.words[0] -= value.code() << 57;
    for (std::size_t digit = 0; digit + down < kDigits; ++digit) {
      result.words[digit + down] += value.words[digit];
    }
  }
  return result;
}

inline Boolean reduce_one(const Reduction& reduction, const std::vector<Boolean>& values) {
  std::size_t trues = 0;
  for (const auto value : values) {
    trues += value.byte != 0 ? 1 : 0;
  }
  switch (reduction.op) {
    case ReduceOp::product:
    case ReduceOp::min:
    case ReduceOp::band: return {static_cast<std::uint8_t>(trues == values.size())};
    case ReduceOp::bxor: return {static_cast<std::uint8_t>(trues % 2)};
    default: return {static_cast<std::uint8_t>(trues != 0)};
  }
}

/// `reduce` with one out, which is returned.
inline std::vector<std::byte> reduce(const Reduction& reduction, std::span<const std::byte* const> sources,
                                     std::size_t count) {
  std::vector<std::byte> out(count * size_of(reduction.dtype));
  with_type(reduction.dtype, [&]<class T>(T) {
    static_assert(std::is_trivially_copyable_v<T>);
    std::vector<T> values(sources.size());
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t source = 0; source < sources.size(); ++source) {
        std::memcpy(&values[source], sources[source] + i * sizeof(T), sizeof(T));
      }
      const T result = reduce_one(reduction, values);
      std::memcpy(out.data() + i * sizeof(T), &result, sizeof(T));
    }
  });
  return out;
}

}  // namespace tutti::kernels::reference
