#pragma once

#include <array>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "tutti/kernels/reproducible.h"
#include "tutti/kernels/test_reference.h"

/// Addends that are hard to add: for tests only.
namespace tutti::kernels::hard {

using Bytes = std::vector<std::byte>;

template <class T>
T from_double(double value) {
  if constexpr (reference::Small<T>) {
    return narrow<T>(static_cast<float>(value));
  } else {
    return static_cast<T>(value);
  }
}

inline int between(std::mt19937& random, int least, int most) {
  return least + static_cast<int>(random() % static_cast<unsigned>(most - least + 1));
}

/// What addends are like.
enum class Kind { anything, alike, tie, faint, edge, smallest, nearly_subnormal, largest, special, count };

/// Of one kind, below 2^top and not much farther down than `spread` bits.
struct Draw {
  Kind kind;
  int top;
  int spread;
};

template <class T>
Draw draw_kind(std::mt19937& random) {
  const auto format = reference::format_of<T>();
  return {.kind = static_cast<Kind>(between(random, 0, static_cast<int>(Kind::count) - 1)),
          .top = between(random, format.lowest, std::ilogb(format.largest)),
          .spread = between(random, 0, 40)};
}

template <class T>
double hard_value(std::mt19937& random, const Draw& draw) {
  const auto format = reference::format_of<T>();
  const double sign = random() % 2 == 0 ? 1 : -1;
  const double fraction = 1 + std::ldexp(random(), -32) + std::ldexp(random(), -64);
  switch (draw.kind) {
    case Kind::anything: return sign * std::ldexp(fraction, between(random, format.lowest, std::ilogb(format.largest)));
    case Kind::alike: return sign * std::ldexp(fraction, between(random, draw.top - draw.spread, draw.top));
    case Kind::tie: {  // half of the last bit, and a last bit far below that shows only when others cancel
      const double half = std::ldexp(1.0, draw.spread / 8 - format.bits);
      const double far = std::ldexp(1.0, -format.bits - draw.spread % 8);
      const std::array parts{1.0, half, far, far * (1 + std::ldexp(1.0, 1 - format.bits))};
      return sign * std::ldexp(parts[random() % parts.size()], draw.top);
    }
    case Kind::faint: {  // beside a tie, what a wider type rounds away, and what it rounds away of that
      const int wide = format.bits < 24 ? 24 : 53;
      const std::array parts{1.0, std::ldexp(1.0, -format.bits),
                             std::ldexp(draw.spread % 2 == 0 ? fraction : 1.0, between(random, -1, 1) - wide),
                             std::ldexp(fraction, between(random, -4, 2) - 2 * wide)};
      return sign * std::ldexp(parts[random() % parts.size()], draw.top);
    }
    case Kind::edge: {  // the lowest of a bin, and those whose last bits are just below what is kept beside it
      const int lowest = (draw.top + 1021) / 32 * 32 - 1021;
      if (random() % 2 == 0) {
        return sign * std::ldexp(1 + std::ldexp(between(random, 0, 3), 1 - format.bits), lowest);
      }
      const int exponent = lowest - (format.bits == 53 ? 64 : 32) + format.bits - between(random, -1, 3);
      const double half = std::ldexp(1.0, lowest - format.bits);
      const double last = std::ldexp(between(random, 0, 3), exponent + 1 - format.bits);
      return sign * (std::ldexp(1.0, exponent) + half + last);
    }
    case Kind::smallest: return sign * std::ldexp(between(random, 0, 9), format.lowest);
    case Kind::nearly_subnormal: return sign * std::ldexp(fraction, format.lowest + format.bits - draw.spread % 4);
    case Kind::largest: return sign * format.largest;
    default: {
      const std::array values{double(INFINITY), -double(INFINITY), std::nan(""), 1.0, 0.0, -0.0};
      return values[random() % values.size()];
    }
  }
}

/// Sources of floats, each element of which is an input of its own: so many addends, found at one place of each source.
class Inputs {
 public:
  Inputs(DType dtype, std::size_t sources, std::size_t count) : dtype_(dtype), count_(count) {
    std::mt19937 random(static_cast<unsigned>(sources * 31 + count));
    sources_.assign(sources, Bytes(count * size_of(dtype)));
    reference::with_type(dtype, [&]<class T>(T) {
      if constexpr (std::floating_point<T> || reference::Small<T>) {
        Draw draw{};
        for (std::size_t i = 0; i < count; ++i) {
          // Vectors of one kind, and, in the second half, of several.
          draw = i % 32 == 0 || i > count / 2 ? draw_kind<T>(random) : draw;
          for (auto& source : sources_) {
            const bool zero = random() % 16 == 0;
            const T value = zero ? T{} : from_double<T>(hard_value<T>(random, draw));
            std::memcpy(source.data() + i * sizeof(T), &value, sizeof(T));
          }
        }
      }
    });
  }

  std::vector<const std::byte*> pointers() const {
    std::vector<const std::byte*> result;
    for (const auto& source : sources_) {
      result.push_back(source.data());
    }
    return result;
  }

  Bytes at_once(ReduceOp op) const {
    Bytes out(count_ * size_of(dtype_));
    reduce({.op = op, .dtype = dtype_}, pointers(), std::array{out.data()}, count_);
    return out;
  }

  std::size_t count() const { return count_; }
  std::size_t accumulator_bytes() const { return count_ * size_of(accumulator_of(dtype_)); }

 private:
  DType dtype_;
  std::size_t count_;
  std::vector<Bytes> sources_;
};

}  // namespace tutti::kernels::hard
