// The loops of reproducible sums. Compiled once for each kind of vector; include after hwy/foreach_target.h.
#if defined(TUTTI_KERNELS_REPRODUCIBLE_LOOPS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TUTTI_KERNELS_REPRODUCIBLE_LOOPS_INL_H
#undef TUTTI_KERNELS_REPRODUCIBLE_LOOPS_INL_H
#else
#define TUTTI_KERNELS_REPRODUCIBLE_LOOPS_INL_H
#endif

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include <hwy/highway.h>

#include "tutti/kernels/blocks-inl.h"
#include "tutti/kernels/easy_sum-inl.h"
#include "tutti/kernels/near_sum-inl.h"
#include "tutti/kernels/round_once-inl.h"
#include "tutti/kernels/sum_at_once-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tutti::kernels::HWY_NAMESPACE {

template <class T>
inline constexpr std::size_t kWords = sizeof(T) == 8 ? 4 : 2;  // of an accumulator

template <class T>
HWY_INLINE std::uint64_t* sum_at(std::byte* sums, std::size_t at) {
  return reinterpret_cast<std::uint64_t*>(sums) + at * kWords<T>;
}
template <class T>
HWY_INLINE const std::uint64_t* sum_at(const std::byte* sums, std::size_t at) {
  return reinterpret_cast<const std::uint64_t*>(sums) + at * kWords<T>;
}

/// `visit(d, at)` for every vector of doubles from `at` on; at the end for single elements, by the same code and so to
/// the same bits.
template <class F>
HWY_INLINE void for_every_vector(std::size_t count, F&& visit, std::size_t at = 0) {
  const hn::ScalableTag<double> vector;
  const hn::CappedTag<double, 1> single;
  for (; at + hn::Lanes(vector) <= count; at += hn::Lanes(vector)) {
    visit(vector, at);
  }
  for (; at < count; ++at) {
    visit(single, at);
  }
}

template <class T, int kBits, class D, class W = WholeVector<D>>
HWY_INLINE auto rounded(D d, const Divisor& by, W code, W a, W b, W c) {
  if constexpr (kDigits<T> == 3) {
    return one_nan(with_special(d, code, a, b, rounded_triple(d, by, code, a, b, c)));
  } else {
    return as_float<kBits>(d, with_special(d, code, a, b, rounded_pair(d, by, code, a, b)));
  }
}

template <class T, int kBits, class D>
HWY_INLINE auto sum_by_digits(D d, const Divisor& by, std::span<const std::byte* const> sources, std::size_t at,
                              hn::Vec<D> most) {
  WholeVector<D> code, a, b, c;
  if constexpr (kDigits<T> == 2) {
    c = hn::Zero(Whole<D>());
    add_up_at_once(d, sources, at, most, code, a, b);
  } else {
    add_up<T>(d, sources, at, most, code, a, b, c);
  }
  return rounded<T, kBits>(d, by, code, a, b, c);
}

template <int kBits, class D>
HWY_INLINE auto sum_easily(D d, const Divisor& by, std::span<const std::byte* const> sources, std::size_t at) {
  return as_float<kBits>(d, divided(d, by, easy_sum(d, sources, at)));
}

template <class T, int kBits, class D>
HWY_INLINE auto sum_vector(D d, const Divisor& by, std::span<const std::byte* const> sources, std::size_t at) {
  if constexpr (kDigits<T> == 3) {
    return sum_by_digits<T, kBits>(d, by, sources, at, largest(d, sources, at, T()));
  } else {
    const hn::Rebind<std::int32_t, D> words;
    hn::Vec<decltype(words)> most;
    if (is_easy<kBits>(words, sources, at, most)) {
      return sum_easily<kBits>(d, by, sources, at);
    }
    return sum_by_digits<T, kBits>(d, by, sources, at, hn::PromoteTo(d, hn::BitCast(hn::Rebind<float, D>(), most)));
  }
}

/// Whole vectors of float32, so that a look at them is one at twice as many as a vector of doubles holds. Returns the
/// number of elements in them.
template <int kBits>
std::size_t sum_whole_vectors([[maybe_unused]] const Divisor& by, [[maybe_unused]] const Buffers& buffers) {
  std::size_t at = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<double> d;
  const hn::Repartition<std::int32_t, decltype(d)> words;
  const hn::Repartition<float, decltype(d)> floats;
  const hn::Half<decltype(floats)> half;
  const auto n = hn::Lanes(d);
  const bool may_be_near = kBits == kOwnBits<float> && buffers.sources.size() <= kMostNear;
  const auto store = [&](auto result, std::size_t where) HWY_ATTR {
    for (auto* out : buffers.outs) {
      hn::StoreU(result, half, reinterpret_cast<float*>(out) + where);
    }
  };
  for (; at + 2 * n <= buffers.count; at += 2 * n) {
    hn::Vec<decltype(words)> most;
    if (is_easy<kBits>(words, buffers.sources, at, most)) {
      store(sum_easily<kBits>(d, by, buffers.sources, at), at);
      store(sum_easily<kBits>(d, by, buffers.sources, at + n), at + n);
      continue;
    }
    const auto largest = hn::BitCast(floats, most);
    const auto dropped = dropped_beside(words, most);
    const auto sum_half = [&](std::size_t where, auto of_half) HWY_ATTR {
      const auto most_of_half = hn::PromoteTo(d, of_half(largest));
      hn::Vec<decltype(half)> result;
      const auto width = width_of_doubles(d, buffers.sources.size(), most_of_half, hn::PromoteTo(d, of_half(dropped)));
      if (!may_be_near || !sum_nearly(d, by, buffers.sources, where, width, result)) {
        result = sum_by_digits<float, kBits>(d, by, buffers.sources, where, most_of_half);
      }
      store(result, where);
    };
    sum_half(at, [&](auto v) HWY_ATTR { return hn::LowerHalf(half, v); });
    sum_half(at + n, [&](auto v) HWY_ATTR { return hn::UpperHalf(half, v); });
  }
#endif
  return at;
}

/// Sources are floats, outs too.
template <class T, int kBits = kOwnBits<T>>
void sum_once(const Divisor& by, const Buffers& buffers) {
  std::size_t done = 0;
  if constexpr (kDigits<T> == 2) {
    done = sum_whole_vectors<kBits>(by, buffers);
  }
  const auto visit = [&](auto d, std::size_t at) HWY_ATTR {
    const auto result = sum_vector<T, kBits>(d, by, buffers.sources, at);
    for (auto* out : buffers.outs) {
      hn::StoreU(result, hn::Rebind<T, decltype(d)>(), reinterpret_cast<T*>(out) + at);
    }
  };
  for_every_vector(buffers.count, visit, done);
}

/// Sources are floats, the one out accumulators that they are added to.
template <class T>
void add_to_sums(const Buffers& buffers) {
  for_every_vector(buffers.count, [&](auto d, std::size_t at) HWY_ATTR {
    WholeVector<decltype(d)> code, a, b, c, code2, a2, b2, c2;
    add_up<T>(d, buffers.sources, at, largest(d, buffers.sources, at, T()), code, a, b, c);
    load_sum<kDigits<T>>(d, sum_at<T>(buffers.outs[0], at), code2, a2, b2, c2);
    merge<kDigits<T>>(d, code, a, b, c, code2, a2, b2, c2);
    store_sum<kDigits<T>>(d, code, a, b, c, sum_at<T>(buffers.outs[0], at));
  });
}

/// Sources are accumulators, outs too.
template <class T>
void merge_sums(const Buffers& buffers) {
  for_every_vector(buffers.count, [&](auto d, std::size_t at) HWY_ATTR {
    WholeVector<decltype(d)> code, a, b, c, code2, a2, b2, c2;
    load_sum<kDigits<T>>(d, sum_at<T>(buffers.sources[0], at), code, a, b, c);
    for (const auto* source : buffers.sources.subspan(1)) {
      load_sum<kDigits<T>>(d, sum_at<T>(source, at), code2, a2, b2, c2);
      merge<kDigits<T>>(d, code, a, b, c, code2, a2, b2, c2);
    }
    for (auto* out : buffers.outs) {
      store_sum<kDigits<T>>(d, code, a, b, c, sum_at<T>(out, at));
    }
  });
}

/// The one source are accumulators, outs are floats.
template <class T, int kBits = kOwnBits<T>>
void round_sums(const Divisor& by, const Buffers& buffers) {
  for_every_vector(buffers.count, [&](auto d, std::size_t at) HWY_ATTR {
    WholeVector<decltype(d)> code, a, b, c;
    load_sum<kDigits<T>>(d, sum_at<T>(buffers.sources[0], at), code, a, b, c);
    const auto result = rounded<T, kBits>(d, by, code, a, b, c);
    for (auto* out : buffers.outs) {
      hn::StoreU(result, hn::Rebind<T, decltype(d)>(), reinterpret_cast<T*>(out) + at);
    }
  });
}

/// What is done to floats of one kind.
template <class S>
void run_task(SumTask task, std::size_t divisor, S&& sums) {
  switch (task) {
    case SumTask::add: return sums.add();
    case SumTask::merge: return sums.merge();
    case SumTask::round: return sums.round(Divisor(divisor));
    case SumTask::at_once: return sums.sum_at_once(Divisor(divisor));
  }
}

}  // namespace tutti::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
