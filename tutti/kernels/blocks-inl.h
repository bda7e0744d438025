// The loop that all kernels share. Compiled once for each kind of vector; include after hwy/foreach_target.h.
#if defined(TUTTI_KERNELS_BLOCKS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TUTTI_KERNELS_BLOCKS_INL_H
#undef TUTTI_KERNELS_BLOCKS_INL_H
#else
#define TUTTI_KERNELS_BLOCKS_INL_H
#endif

#include <concepts>
#include <cstddef>
#include <cstring>
#include <limits>

#include <hwy/highway.h>

#include "tutti/kernels/families.h"

HWY_BEFORE_NAMESPACE();
namespace tutti::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// How elements lie in memory, and the vectors in which they are computed. A block is what four such vectors hold: so
/// much at a time hides how long an addition takes. (Four names and no array: a vector whose length only the processor
/// knows cannot be put into one.) `encode` turns results into what is stored, `store` may then be called many times.
/// `kLight`: so little to compute that the loop's own work counts.
template <class C>
concept Codec = requires(const typename C::Stored* from, typename C::Stored* to, typename C::Vector v) {
  { C::kLight } -> std::convertible_to<bool>;
  { C::block() } -> std::same_as<std::size_t>;
  C::load(from, v, v, v, v);
  C::encode(v, v, v, v);
  C::store(v, v, v, v, to);
};

/// `take` is done to the elements of one source when they are read, `combine` joins two sources, `finish` comes last.
template <class O, class V>
concept Operation = requires(const O& op, V v, std::size_t source) {
  { op.take(v, source) } -> std::same_as<V>;
  { op.combine(v, v) } -> std::same_as<V>;
  { op.finish(v) } -> std::same_as<V>;
};

/// Processors differ in which NaN they hand on, compilers in the order of operands: all NaNs become one.
template <class V>
HWY_INLINE V one_nan(V v) {
  using T = hn::TFromV<V>;
  return hn::IfThenElse(hn::IsNaN(v), hn::Set(hn::DFromV<V>(), std::numeric_limits<T>::quiet_NaN()), v);
}

/// Elements that are computed as they are stored.
template <class T>
struct Direct {
  using Stored = T;
  using D = hn::ScalableTag<T>;
  using Vector = hn::Vec<D>;
  static constexpr bool kLight = true;

  static HWY_INLINE std::size_t block() { return 4 * hn::Lanes(D()); }

  static HWY_INLINE void load(const T* from, Vector& v0, Vector& v1, Vector& v2, Vector& v3) {
    const std::size_t n = hn::Lanes(D());
    v0 = hn::LoadU(D(), from);
    v1 = hn::LoadU(D(), from + n);
    v2 = hn::LoadU(D(), from + 2 * n);
    v3 = hn::LoadU(D(), from + 3 * n);
  }

  static HWY_INLINE void encode(Vector& v0, Vector& v1, Vector& v2, Vector& v3) {
    v0 = encoded(v0);
    v1 = encoded(v1);
    v2 = encoded(v2);
    v3 = encoded(v3);
  }

  static HWY_INLINE void store(Vector v0, Vector v1, Vector v2, Vector v3, T* to) {
    const std::size_t n = hn::Lanes(D());
    hn::StoreU(v0, D(), to);
    hn::StoreU(v1, D(), to + n);
    hn::StoreU(v2, D(), to + 2 * n);
    hn::StoreU(v3, D(), to + 3 * n);
  }

  static HWY_INLINE Vector encoded(Vector v) {
    if constexpr (std::floating_point<T>) {
      return one_nan(v);
    } else {
      return v;
    }
  }
};

template <Codec C, Operation<typename C::Vector> Op, class V = typename C::Vector>
HWY_INLINE void begin_block(const Op& op, const typename C::Stored* from, V& v0, V& v1, V& v2, V& v3) {
  C::load(from, v0, v1, v2, v3);
  v0 = op.take(v0, 0);
  v1 = op.take(v1, 0);
  v2 = op.take(v2, 0);
  v3 = op.take(v3, 0);
}

template <Codec C, Operation<typename C::Vector> Op, class V = typename C::Vector>
HWY_INLINE void add_block(const Op& op, const typename C::Stored* from, std::size_t source, V& v0, V& v1, V& v2,
                          V& v3) {
  V w0, w1, w2, w3;
  C::load(from, w0, w1, w2, w3);
  v0 = op.combine(v0, op.take(w0, source));
  v1 = op.combine(v1, op.take(w1, source));
  v2 = op.combine(v2, op.take(w2, source));
  v3 = op.combine(v3, op.take(w3, source));
}

template <Codec C, Operation<typename C::Vector> Op, class V = typename C::Vector>
HWY_INLINE void finish_block(const Op& op, V& v0, V& v1, V& v2, V& v3) {
  v0 = op.finish(v0);
  v1 = op.finish(v1);
  v2 = op.finish(v2);
  v3 = op.finish(v3);
  C::encode(v0, v1, v2, v3);
}

/// Where vectors can be loaded and stored in part, what comes after the last whole block needs nothing else.
template <class C>
constexpr bool kInParts = HWY_MEM_OPS_MIGHT_FAULT == 0 && std::same_as<C, Direct<typename C::Stored>>;

template <class T, class Op>
void reduce_vectors(const Op& op, const Buffers& buffers, std::size_t begin) {
  const typename Direct<T>::D d;
  const auto source = [&](std::size_t i) HWY_ATTR { return reinterpret_cast<const T*>(buffers.sources[i]); };
  for (std::size_t at = begin; at < buffers.count; at += hn::Lanes(d)) {
    const auto mask = hn::FirstN(d, HWY_MIN(hn::Lanes(d), buffers.count - at));
    auto v = op.take(hn::MaskedLoad(mask, d, source(0) + at), 0);
    for (std::size_t i = 1; i < buffers.sources.size(); ++i) {
      v = op.combine(v, op.take(hn::MaskedLoad(mask, d, source(i) + at), i));
    }
    v = Direct<T>::encoded(op.finish(v));
    for (auto* out : buffers.outs) {
      hn::BlendedStore(v, mask, d, reinterpret_cast<T*>(out) + at);
    }
  }
}

/// Elsewhere it goes through memory as long as a block: the same vectors, so the same bits.
template <Codec C, Operation<typename C::Vector> Op>
void reduce_rest(const Op& op, const Buffers& buffers, std::size_t begin) {
  using T = typename C::Stored;
  HWY_ALIGN T padded[4 * HWY_MAX_BYTES / sizeof(T)] = {};
  const std::size_t offset = begin * sizeof(T);
  const std::size_t bytes = (buffers.count - begin) * sizeof(T);
  typename C::Vector v0, v1, v2, v3;
  std::memcpy(padded, buffers.sources[0] + offset, bytes);
  begin_block<C>(op, padded, v0, v1, v2, v3);
  for (std::size_t source = 1; source < buffers.sources.size(); ++source) {
    std::memcpy(padded, buffers.sources[source] + offset, bytes);
    add_block<C>(op, padded, source, v0, v1, v2, v3);
  }
  finish_block<C>(op, v0, v1, v2, v3);
  C::store(v0, v1, v2, v3, padded);
  for (auto* out : buffers.outs) {
    std::memcpy(out + offset, padded, bytes);
  }
}

/// All whole blocks; returns the number of elements in them.
template <Codec C, Operation<typename C::Vector> Op>
std::size_t reduce_blocks(const Op& op, const Buffers& buffers) {
  using T = typename C::Stored;
  const std::size_t step = C::block();
  std::size_t at = 0;
  for (; at + step <= buffers.count; at += step) {
    typename C::Vector v0, v1, v2, v3;
    begin_block<C>(op, reinterpret_cast<const T*>(buffers.sources[0]) + at, v0, v1, v2, v3);
    for (std::size_t source = 1; source < buffers.sources.size(); ++source) {
      add_block<C>(op, reinterpret_cast<const T*>(buffers.sources[source]) + at, source, v0, v1, v2, v3);
    }
    finish_block<C>(op, v0, v1, v2, v3);
    for (auto* out : buffers.outs) {
      C::store(v0, v1, v2, v3, reinterpret_cast<T*>(out) + at);
    }
  }
  return at;
}

/// The same for a number of sources that the compiler knows, and one out or as many. Where everything lies in a near
/// cache, looking addresses up for every block costs a quarter of the time.
template <std::size_t kSources, std::size_t kOuts, Codec C, Operation<typename C::Vector> Op>
std::size_t reduce_blocks_of(const Op& op, const Buffers& buffers) {
  using T = typename C::Stored;
  const T* sources[kSources];
  T* outs[kOuts];
  for (std::size_t i = 0; i < kSources; ++i) {
    sources[i] = reinterpret_cast<const T*>(buffers.sources[i]);
  }
  for (std::size_t i = 0; i < kOuts; ++i) {
    outs[i] = reinterpret_cast<T*>(buffers.outs[i]);
  }
  const std::size_t count = buffers.count;
  const std::size_t step = C::block();
  std::size_t at = 0;
  for (; at + step <= count; at += step) {
    typename C::Vector v0, v1, v2, v3;
    begin_block<C>(op, sources[0] + at, v0, v1, v2, v3);
#pragma GCC unroll 8
    for (std::size_t i = 1; i < kSources; ++i) {
      add_block<C>(op, sources[i] + at, i, v0, v1, v2, v3);
    }
    finish_block<C>(op, v0, v1, v2, v3);
#pragma GCC unroll 8
    for (std::size_t i = 0; i < kOuts; ++i) {
      C::store(v0, v1, v2, v3, outs[i] + at);
    }
  }
  return at;
}

/// Of the usual numbers of ranks.
template <std::size_t kSources, Codec C, Operation<typename C::Vector> Op>
std::size_t reduce_blocks_of(const Op& op, const Buffers& buffers) {
  return buffers.outs.size() == 1          ? reduce_blocks_of<kSources, 1, C>(op, buffers)
         : buffers.outs.size() == kSources ? reduce_blocks_of<kSources, kSources, C>(op, buffers)
                                           : reduce_blocks<C>(op, buffers);
}

template <Codec C, Operation<typename C::Vector> Op>
std::size_t reduce_whole_blocks(const Op& op, const Buffers& buffers) {
  if constexpr (C::kLight) {
    switch (buffers.sources.size()) {
      case 2: return reduce_blocks_of<2, C>(op, buffers);
      case 4: return reduce_blocks_of<4, C>(op, buffers);
      case 8: return reduce_blocks_of<8, C>(op, buffers);
      default: break;
    }
  }
  return reduce_blocks<C>(op, buffers);
}

template <Codec C, Operation<typename C::Vector> Op>
void reduce_with(const Op& op, const Buffers& buffers) {
  const std::size_t done = reduce_whole_blocks<C>(op, buffers);
  if (done == buffers.count) {
    return;
  }
  if constexpr (kInParts<C>) {
    reduce_vectors<typename C::Stored>(op, buffers, done);
  } else {
    reduce_rest<C>(op, buffers, done);
  }
}

}  // namespace tutti::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
