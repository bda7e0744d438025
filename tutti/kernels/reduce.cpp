#include "tutti/kernels/reduce.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <concepts>
#include <type_traits>

#include <fmt/format.h>

#include "tutti/kernels/small_float.h"

namespace tutti::kernels {
namespace {

template <class T>
concept SmallFloat =
    std::same_as<T, Float16> || std::same_as<T, BFloat16> || std::same_as<T, Float8E4M3> || std::same_as<T, Float8E5M2>;

template <class T>
concept Complex = std::same_as<T, std::complex<float>> || std::same_as<T, std::complex<double>>;

/// One byte, zero or not; anything but zero reads as true.
struct Boolean {
  std::uint8_t byte;
};

template <class T>
struct AccumulatorOf {
  using type = T;
};
template <SmallFloat T>
struct AccumulatorOf<T> {
  using type = float;
};
template <>
struct AccumulatorOf<Boolean> {
  using type = std::uint8_t;
};
template <class T>
using Accumulator = typename AccumulatorOf<T>::type;

template <class T>
Accumulator<T> load(T value) {
  if constexpr (SmallFloat<T>) {
    return widen(value);
  } else if constexpr (std::same_as<T, Boolean>) {
    return value.byte != 0 ? 1 : 0;
  } else {
    return value;
  }
}

template <class T>
T store(Accumulator<T> value) {
  if constexpr (SmallFloat<T>) {
    return narrow<T>(value);
  } else if constexpr (std::same_as<T, Boolean>) {
    return {static_cast<std::uint8_t>(value != 0 ? 1 : 0)};
  } else {
    return value;
  }
}

/// Integers wrap around; signed overflow must not be undefined.
template <class A, class F>
A wrapping(A a, A b, F f) {
  if constexpr (std::signed_integral<A>) {
    using U = std::make_unsigned_t<A>;
    using Wide = std::conditional_t<(sizeof(U) < sizeof(unsigned)), unsigned, U>;  // small types promote to int
    return static_cast<A>(f(static_cast<Wide>(static_cast<U>(a)), static_cast<Wide>(static_cast<U>(b))));
  } else if constexpr (std::unsigned_integral<A> && sizeof(A) < sizeof(unsigned)) {
    return static_cast<A>(f(static_cast<unsigned>(a), static_cast<unsigned>(b)));
  } else {
    return f(a, b);
  }
}

template <class T, ReduceOp op>
Accumulator<T> combine(Accumulator<T> a, Accumulator<T> b) {
  using A = Accumulator<T>;
  constexpr bool kLogical = std::same_as<T, Boolean>;
  if constexpr (kLogical) {
    constexpr bool kAny = op == ReduceOp::sum || op == ReduceOp::max || op == ReduceOp::bor;
    return op == ReduceOp::bxor ? a ^ b : kAny ? a | b : a & b;
  } else if constexpr (op == ReduceOp::sum || op == ReduceOp::avg) {
    return wrapping(a, b, [](auto x, auto y) { return x + y; });
  } else if constexpr (op == ReduceOp::product) {
    return wrapping(a, b, [](auto x, auto y) { return x * y; });
  } else if constexpr ((op == ReduceOp::min || op == ReduceOp::max) && !Complex<A>) {
    if constexpr (std::floating_point<A>) {
      const bool first = op == ReduceOp::min ? a < b : a > b;
      return first || std::isnan(a) ? a : b;
    } else {
      return op == ReduceOp::min ? std::min(a, b) : std::max(a, b);
    }
  } else if constexpr (std::integral<A>) {
    return static_cast<A>(op == ReduceOp::band ? a & b : op == ReduceOp::bor ? a | b : a ^ b);
  } else {
    return a;  // can_reduce lets nobody come here
  }
}

// Accumulators of a tile stay in the first cache while every source is added to them.
constexpr std::size_t kTile = 1024;

template <class T, ReduceOp op>
void reduce_typed(std::span<const std::byte* const> sources, std::byte* out, std::size_t count) {
  std::array<Accumulator<T>, kTile> accumulators;
  for (std::size_t begin = 0; begin < count; begin += kTile) {
    const auto length = std::min(kTile, count - begin);
    const auto* first = reinterpret_cast<const T*>(sources[0]) + begin;
    for (std::size_t i = 0; i < length; ++i) {
      accumulators[i] = load(first[i]);
    }
    for (const auto* bytes : sources.subspan(1)) {
      const auto* source = reinterpret_cast<const T*>(bytes) + begin;
      for (std::size_t i = 0; i < length; ++i) {
        accumulators[i] = combine<T, op>(accumulators[i], load(source[i]));
      }
    }
    auto* result = reinterpret_cast<T*>(out) + begin;
    if constexpr (op == ReduceOp::avg && !std::integral<Accumulator<T>>) {
      // A division, not a product with 1/n: the mean is then rounded once.
      const Accumulator<T> divisor(static_cast<float>(sources.size()));
      for (std::size_t i = 0; i < length; ++i) {
        accumulators[i] = accumulators[i] / divisor;
      }
    }
    for (std::size_t i = 0; i < length; ++i) {
      result[i] = store<T>(accumulators[i]);
    }
  }
}

template <class T>
void reduce_op(ReduceOp op, std::span<const std::byte* const> sources, std::byte* out, std::size_t count) {
  switch (op) {
    case ReduceOp::sum: return reduce_typed<T, ReduceOp::sum>(sources, out, count);
    case ReduceOp::avg: return reduce_typed<T, ReduceOp::avg>(sources, out, count);
    case ReduceOp::product: return reduce_typed<T, ReduceOp::product>(sources, out, count);
    case ReduceOp::min: return reduce_typed<T, ReduceOp::min>(sources, out, count);
    case ReduceOp::max: return reduce_typed<T, ReduceOp::max>(sources, out, count);
    case ReduceOp::band: return reduce_typed<T, ReduceOp::band>(sources, out, count);
    case ReduceOp::bor: return reduce_typed<T, ReduceOp::bor>(sources, out, count);
    case ReduceOp::bxor: return reduce_typed<T, ReduceOp::bxor>(sources, out, count);
  }
}

bool is_complex(DType dtype) { return dtype == DType::complex64 || dtype == DType::complex128; }
bool is_float(DType dtype) { return dtype <= DType::float8_e5m2; }

}  // namespace

std::string_view to_string(ReduceOp op) {
  constexpr std::array<std::string_view, kReduceOps> kNames{"sum", "avg",  "product", "min",
                                                            "max", "band", "bor",     "bxor"};
  return kNames[static_cast<std::size_t>(op)];
}

Status can_reduce(ReduceOp op, DType dtype) {
  const auto refuse = [&](std::string_view why) {
    return Error{Code::unsupported, fmt::format("{} of {}: {}", to_string(op), to_string(dtype), why)};
  };
  const bool bitwise = op == ReduceOp::band || op == ReduceOp::bor || op == ReduceOp::bxor;
  if (op == ReduceOp::avg && !is_float(dtype) && !is_complex(dtype)) {
    return refuse("the mean of whole numbers is none; sum and divide, or use a float type");
  }
  if (bitwise && (is_float(dtype) || is_complex(dtype))) {
    return refuse("bits of floats are not combined; use an integer type or bool");
  }
  if ((op == ReduceOp::min || op == ReduceOp::max) && is_complex(dtype)) {
    return refuse("complex numbers have no order; reduce their real and imaginary parts (view_as_real)");
  }
  return {};
}

void reduce(ReduceOp op, DType dtype, std::span<const std::byte* const> sources, std::byte* out, std::size_t count) {
  switch (dtype) {
    case DType::float64: return reduce_op<double>(op, sources, out, count);
    case DType::float32: return reduce_op<float>(op, sources, out, count);
    case DType::float16: return reduce_op<Float16>(op, sources, out, count);
    case DType::bfloat16: return reduce_op<BFloat16>(op, sources, out, count);
    case DType::float8_e4m3fn: return reduce_op<Float8E4M3>(op, sources, out, count);
    case DType::float8_e5m2: return reduce_op<Float8E5M2>(op, sources, out, count);
    case DType::int64: return reduce_op<std::int64_t>(op, sources, out, count);
    case DType::int32: return reduce_op<std::int32_t>(op, sources, out, count);
    case DType::int16: return reduce_op<std::int16_t>(op, sources, out, count);
    case DType::int8: return reduce_op<std::int8_t>(op, sources, out, count);
    case DType::uint64: return reduce_op<std::uint64_t>(op, sources, out, count);
    case DType::uint32: return reduce_op<std::uint32_t>(op, sources, out, count);
    case DType::uint16: return reduce_op<std::uint16_t>(op, sources, out, count);
    case DType::uint8: return reduce_op<std::uint8_t>(op, sources, out, count);
    case DType::boolean: return reduce_op<Boolean>(op, sources, out, count);
    case DType::complex64: return reduce_op<std::complex<float>>(op, sources, out, count);
    case DType::complex128: return reduce_op<std::complex<double>>(op, sources, out, count);
  }
}

}  // namespace tutti::kernels
