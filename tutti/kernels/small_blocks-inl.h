// Reproducible sums of small floats in float32, a block at a time. Compiled once for each kind of vector; include after
// hwy/foreach_target.h.
//
// A float32 has room for many of them: mostly it holds their sum exactly. If it does not, two float32 do, of which the
// second gathers what the first has rounded away.
#if defined(TUTTI_KERNELS_SMALL_BLOCKS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TUTTI_KERNELS_SMALL_BLOCKS_INL_H
#undef TUTTI_KERNELS_SMALL_BLOCKS_INL_H
#else
#define TUTTI_KERNELS_SMALL_BLOCKS_INL_H
#endif

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include <hwy/highway.h>

#include "tutti/kernels/operations-inl.h"
#include "tutti/kernels/round_once-inl.h"
#include "tutti/kernels/small_floats-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tutti::kernels::HWY_NAMESPACE {

/// Powers of two by which float32 divides exactly, whatever small float it holds.
inline constexpr double kMostExact = 1 << 10;

/// The sum of negative zeros is +0.
struct SumFromZero : Sum {
  template <class V>
  HWY_INLINE V finish(V v) const {
    return hn::Add(v, hn::Zero(hn::DFromV<V>()));
  }
};

/// Each addend is divided, so that no sum overflows whose mean does not.
class MeanFromZero : public SumFromZero {
 public:
  explicit MeanFromZero(const Divisor& by) : inverse_(static_cast<float>(by.inverse)) {}

  template <class V>
  HWY_INLINE V take(V v, std::size_t /*source*/) const {
    return hn::Mul(v, hn::Set(hn::DFromV<V>(), inverse_));
  }

 private:
  float inverse_;
};

/// What holds the sums of a block exactly.
enum class Fit { one_float, two_floats, neither };

/// How far apart addends may be, as differences between their bits, for one float32 and for two; and how large.
template <class T, int kBits>
struct Room {
  static constexpr int kMost = (1 << (8 * sizeof(T) - 1)) - 1;  // the bits of a magnitude

  /// One holds the bits of an addend, those between the largest and the smallest exponent, and what so many addends
  /// carry. Two hold twice as much, but what the first rounds away is carried, too; and of bfloat16 there is a last bit
  /// that is kept, at least 32 bits from the largest's first.
  explicit Room(std::size_t addends) {
    const int carried = std::bit_width(addends - 1);
    one = bits_of_exponents(24 - kBits - carried);
    two = bits_of_exponents(std::min(48 - 2 * carried, kLikeFloat32 ? 32 : 48) - kBits);
  }

  int one;
  int two;
  static constexpr bool kLikeFloat32 = 8 * sizeof(T) - kBits == 8;
  /// Sums of large bfloat16 could overflow, sums of others cannot; but from infinity nothing can be subtracted.
  static constexpr int kLargest = kLikeFloat32 ? 224 << (kBits - 1) : kMost - (1 << (kBits - 1));

 private:
  static int bits_of_exponents(int exponents) { return std::clamp(exponents * (1 << (kBits - 1)), -1, kMost); }
};

/// Of the elements from `at` on, as they are stored.
template <class T, int kBits>
HWY_INLINE Fit fit_of(const Room<T, kBits>& room, std::span<const std::byte* const> sources, std::size_t at,
                      std::size_t block) {
  const hn::ScalableTag<T> d;
  const hn::RebindToSigned<decltype(d)> words;  // which compare faster; there is no sign
  const auto whole = [&](int value) HWY_ATTR { return hn::Set(d, static_cast<T>(value)); };
  const auto over = [&](auto value, int bound)
                        HWY_ATTR { return hn::Gt(hn::BitCast(words, value), hn::BitCast(words, whole(bound))); };
  Fit fit = Fit::one_float;
  for (const std::size_t end = at + block; at < end; at += hn::Lanes(d)) {
    auto most = hn::Zero(d);
    auto least = whole(-1);  // one less than the least that is not zero
    for (const auto* source : sources) {
      const auto magnitude = hn::And(hn::LoadU(d, reinterpret_cast<const T*>(source) + at), whole(room.kMost));
      most = hn::Max(most, magnitude);
      least = hn::Min(least, hn::Sub(magnitude, whole(1)));
    }
    const auto width = hn::Sub(most, least);
    const auto is_large = over(most, room.kLargest);
    if (HWY_LIKELY(hn::AllFalse(words, hn::Or(over(width, room.one), is_large)))) {
      continue;
    }
    if (!hn::AllFalse(words, hn::Or(over(width, room.two), is_large))) {
      return Fit::neither;
    }
    fit = Fit::two_floats;
  }
  return fit;
}

template <Codec C, class V = typename C::Vector>
HWY_INLINE void store_block(V v0, V v1, V v2, V v3, std::span<std::byte* const> outs, std::size_t at) {
  for (auto* out : outs) {
    C::store(v0, v1, v2, v3, reinterpret_cast<typename C::Stored*>(out) + at);
  }
}

template <Codec C, class Op>
HWY_INLINE void sum_block(const Op& op, const Buffers& buffers, std::size_t at) {
  using T = typename C::Stored;
  typename C::Vector v0, v1, v2, v3;
  begin_block<C>(op, reinterpret_cast<const T*>(buffers.sources[0]) + at, v0, v1, v2, v3);
  for (std::size_t i = 1; i < buffers.sources.size(); ++i) {
    add_block<C>(op, reinterpret_cast<const T*>(buffers.sources[i]) + at, i, v0, v1, v2, v3);
  }
  finish_block<C>(op, v0, v1, v2, v3);
  store_block<C>(v0, v1, v2, v3, buffers.outs, at);
}

/// Adds to `sum`, and to `rest` what is rounded away.
template <class V>
HWY_INLINE void add_to_two(V addend, V& sum, V& rest) {
  V error;
  sum = two_sum(sum, addend, error);
  rest = hn::Add(rest, error);
}

template <Codec C, class Op>
HWY_INLINE void sum_block_in_two(const Op& op, const Buffers& buffers, std::size_t at) {
  using T = typename C::Stored;
  const Floats d;
  typename C::Vector v0, v1, v2, v3, w0, w1, w2, w3;
  begin_block<C>(op, reinterpret_cast<const T*>(buffers.sources[0]) + at, v0, v1, v2, v3);
  auto rest0 = hn::Zero(d);
  auto rest1 = hn::Zero(d);
  auto rest2 = hn::Zero(d);
  auto rest3 = hn::Zero(d);
  for (std::size_t i = 1; i < buffers.sources.size(); ++i) {
    begin_block<C>(op, reinterpret_cast<const T*>(buffers.sources[i]) + at, w0, w1, w2, w3);
    add_to_two(w0, v0, rest0);
    add_to_two(w1, v1, rest1);
    add_to_two(w2, v2, rest2);
    add_to_two(w3, v3, rest3);
  }
  v0 = odd_sum(d, v0, rest0);
  v1 = odd_sum(d, v1, rest1);
  v2 = odd_sum(d, v2, rest2);
  v3 = odd_sum(d, v3, rest3);
  finish_block<C>(op, v0, v1, v2, v3);
  store_block<C>(v0, v1, v2, v3, buffers.outs, at);
}

}  // namespace tutti::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
