// Reproducible sums of small floats whose exponents lie far apart. Compiled once for each kind of vector; include after
// hwy/foreach_target.h.
//
// Of every addend what is below the last digit is rounded away. What float32 rounds away of the sum of the rest is
// gathered in a second float32, which is only so far from the truth. Mostly both ends of that interval are rounded to
// the same small float: then so is the sum, and no digit has to be cut.
#if defined(TUTTI_KERNELS_KEPT_SUM_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TUTTI_KERNELS_KEPT_SUM_INL_H
#undef TUTTI_KERNELS_KEPT_SUM_INL_H
#else
#define TUTTI_KERNELS_KEPT_SUM_INL_H
#endif

#include <bit>
#include <cstddef>

#include <hwy/highway.h>

#include "tutti/kernels/pair_sum-inl.h"
#include "tutti/kernels/small_blocks-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tutti::kernels::HWY_NAMESPACE {

/// More addends are seldom decided.
inline constexpr std::size_t kMostKept = 256;

#if HWY_HAVE_SCALABLE

/// Vectors whose length is not known when this is compiled cannot be members: digits are cut then.
template <Codec C, int kBits, class Op>
bool sum_block_kept(const Op& /*op*/, const Buffers& /*buffers*/, std::size_t /*at*/) {
  return false;
}

#else

/// The largest magnitudes of a block, as they are stored; whether sums of these cannot overflow. (Infinities and NaNs
/// are larger.)
template <class T, int kBits>
HWY_INLINE bool largest_of_block(const Buffers& buffers, std::size_t at, std::size_t block, T* largest) {
  const int carried = std::bit_width(buffers.sources.size());
  const int bound = (253 - carried) * (1 << (kBits - 1));
  const hn::ScalableTag<T> d;
  const hn::RebindToSigned<decltype(d)> words;  // which compare faster; there is no sign
  auto all = hn::Zero(words);
  for (std::size_t i = 0; i < block; i += hn::Lanes(d)) {
    auto most = hn::Zero(d);
    for (const auto* source : buffers.sources) {
      const auto bits = hn::LoadU(d, reinterpret_cast<const T*>(source) + at + i);
      most = hn::Max(most, hn::And(bits, hn::Set(d, static_cast<T>(Room<T, kBits>::kMost))));
    }
    all = hn::Max(all, hn::BitCast(words, most));
    hn::StoreU(most, d, largest + i);
  }
  return hn::AllFalse(words, hn::Gt(all, hn::Set(words, static_cast<hn::TFromD<decltype(words)>>(bound))));
}

/// A sum in float32, what it has rounded away, and the magnitudes of that.
struct KeptSum {
  FloatVector sum;
  FloatVector rest;
  FloatVector rounded;
  FloatVector keeper;

  template <class Op>
  HWY_INLINE void begin(const Op& op, FloatVector v, FloatVector most) {
    const Floats d;
    keeper = keeper_of(d, most);
    sum = op.take(kept(d, v, keeper), 0);
    rest = hn::Zero(d);
    rounded = hn::Zero(d);
  }

  template <class Op>
  HWY_INLINE void add(const Op& op, FloatVector v, std::size_t source) {
    FloatVector error;
    sum = two_sum(sum, op.take(kept(Floats(), v, keeper), source), error);
    rest = hn::Add(rest, error);
    rounded = hn::Add(rounded, hn::Abs(error));
  }

  /// The ends of the interval. Of so many addends, each addition to the rest rounds by at most 2^-24 of all that was
  /// rounded away; so does making an interval of it. Two more are for the rounding of this bound.
  HWY_INLINE void ends(std::size_t addends, FloatVector& lower, FloatVector& upper) const {
    const Floats d;
    const auto width = hn::Mul(rounded, hn::Set(d, static_cast<float>(addends + 2) * 0x1p-24F));
    lower = odd_sum(d, sum, hn::Sub(rest, width));
    upper = odd_sum(d, sum, hn::Add(rest, width));
  }
};

/// A block of floats whose exponents are float32's: stored, if it is decided; whether it is.
template <Codec C, int kBits, class Op>
HWY_INLINE bool sum_block_kept(const Op& op, const Buffers& buffers, std::size_t at) {
  using T = typename C::Stored;
  HWY_ALIGN T largest[4 * HWY_MAX_BYTES / sizeof(float)];
  if (!largest_of_block<T, kBits>(buffers, at, C::block(), largest)) {
    return false;
  }
  typename C::Vector v0, v1, v2, v3, w0, w1, w2, w3;
  KeptSum s0, s1, s2, s3;
  const auto load = [&](std::size_t i)
                        HWY_ATTR { C::load(reinterpret_cast<const T*>(buffers.sources[i]) + at, v0, v1, v2, v3); };
  C::load(largest, w0, w1, w2, w3);
  load(0);
  s0.begin(op, v0, w0);
  s1.begin(op, v1, w1);
  s2.begin(op, v2, w2);
  s3.begin(op, v3, w3);
  const std::size_t addends = buffers.sources.size();
  for (std::size_t i = 1; i < addends; ++i) {
    load(i);
    s0.add(op, v0, i);
    s1.add(op, v1, i);
    s2.add(op, v2, i);
    s3.add(op, v3, i);
  }
  s0.ends(addends, v0, w0);
  s1.ends(addends, v1, w1);
  s2.ends(addends, v2, w2);
  s3.ends(addends, v3, w3);
  finish_block<C>(op, v0, v1, v2, v3);
  finish_block<C>(op, w0, w1, w2, w3);
  if (!C::same(v0, v1, v2, v3, w0, w1, w2, w3)) {
    return false;
  }
  store_block<C>(v0, v1, v2, v3, buffers.outs, at);
  return true;
}

#endif

}  // namespace tutti::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
