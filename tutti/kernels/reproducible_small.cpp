#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "tutti/kernels/families.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tutti/kernels/reproducible_small.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "tutti/kernels/bfloat16s-inl.h"
#include "tutti/kernels/kept_sum-inl.h"
#include "tutti/kernels/reproducible_loops-inl.h"
#include "tutti/kernels/small_blocks-inl.h"
#include "tutti/kernels/small_floats-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tutti::kernels::HWY_NAMESPACE {

/// So many elements of so many sources are widened at a time: few enough to stay in the first cache.
inline constexpr std::size_t kTile = HWY_MAX(256, HWY_MAX_BYTES);
inline constexpr std::size_t kRows = 16;

/// Small floats, of so many bits, are added as float32, and rounded once more when they are stored. `C` keeps them in
/// order; `Q`, where the order does not matter, may be quicker.
template <Codec C, int kBits, Codec Q = C>
class SmallSums {
 public:
  explicit SmallSums(const Buffers& buffers) : buffers_(buffers) {}

  void add() {
    for_every_tile([&] {
      const std::array sums{buffers_.outs[0] + begin_ * kWords<float> * sizeof(std::uint64_t)};
      add_all_to(sums);
    });
  }

  void merge() {}  // their accumulators are those of float32

  void round(const Divisor& by) {
    for_every_tile([&] {
      const std::array sums{buffers_.sources[0] + begin_ * kWords<float> * sizeof(std::uint64_t)};
      round_sums<float, kBits>(by, {.sources = sums, .outs = result_bytes_, .count = length_});
      store_result();
    });
  }

  void sum_at_once(const Divisor& by) {
    if (by.is_one) {
      sum_blocks(SumFromZero(), by);
    } else if (by.is_power && by.value <= kMostExact) {
      sum_blocks(MeanFromZero(by), by);
    } else {
      for_every_tile([&] { sum_tile(by); });
    }
  }

 private:
  using T = typename C::Stored;

  template <class F>
  void for_every_tile(F&& visit) {
    for (begin_ = 0; begin_ < buffers_.count; begin_ += kTile) {
      length_ = std::min(kTile, buffers_.count - begin_);
      visit();
    }
  }

  /// Two are added in float32: it has twice their bits and two, so that rounding to it first does no harm. (Where what
  /// is stored has fewer bits because it is subnormal, float32 is exact.)
  template <class Op>
  void sum_blocks(const Op& op, const Divisor& by) {
    if (buffers_.sources.size() <= 2) {
      return reduce_with<Q>(op, buffers_);
    }
    const Room<T, kBits> room(buffers_.sources.size());
    const bool may_be_kept = room.kLikeFloat32 && buffers_.sources.size() <= kMostKept;
    for (begin_ = 0; begin_ < buffers_.count; begin_ += length_) {
      length_ = std::min(Q::block(), buffers_.count - begin_);
      const bool whole = length_ == Q::block();
      switch (whole ? fit_of(room, buffers_.sources, begin_, length_) : Fit::neither) {
        case Fit::one_float: sum_block<Q>(op, buffers_, begin_); break;
        case Fit::two_floats: sum_block_in_two<Q>(op, buffers_, begin_); break;
        case Fit::neither:
          if (!may_be_kept || !whole || !sum_block_kept<Q, kBits>(op, buffers_, begin_)) {
            sum_tile(by);
          }
          break;
      }
    }
  }

  void sum_tile(const Divisor& by) {
    if (buffers_.sources.size() <= kRows) {
      sum_once<float, kBits>(by, {.sources = widened(buffers_.sources), .outs = result_bytes_, .count = length_});
    } else {
      sum_through_memory(by);
    }
    store_result();
  }

  void sum_through_memory(const Divisor& by) {
    std::array<std::uint64_t, kTile * kWords<float>> sums{};
    add_all_to(std::array{reinterpret_cast<std::byte*>(sums.data())});
    const std::array from{reinterpret_cast<const std::byte*>(sums.data())};
    round_sums<float, kBits>(by, {.sources = from, .outs = result_bytes_, .count = length_});
  }

  void add_all_to(std::span<std::byte* const> sums) {
    for (std::size_t first = 0; first < buffers_.sources.size(); first += kRows) {
      const auto some = buffers_.sources.subspan(first, std::min(kRows, buffers_.sources.size() - first));
      add_to_sums<float>({.sources = widened(some), .outs = sums, .count = length_});
    }
  }

  /// The tile of each source, as float32.
  std::span<const std::byte* const> widened(std::span<const std::byte* const> sources) {
    for (std::size_t i = 0; i < sources.size(); ++i) {
      widen_row(reinterpret_cast<const T*>(sources[i]) + begin_, rows_[i]);
      row_bytes_[i] = reinterpret_cast<const std::byte*>(rows_[i]);
    }
    return {row_bytes_.data(), sources.size()};
  }

  void widen_row(const T* from, float* to) {
    const std::size_t whole_blocks = length_ - length_ % C::block();
    for (std::size_t at = 0; at < whole_blocks; at += C::block()) {
      widen_block(from + at, to + at);
    }
    if (whole_blocks != length_) {
      std::memcpy(padded_, from + whole_blocks, (length_ - whole_blocks) * sizeof(T));
      widen_block(padded_, to + whole_blocks);
    }
  }

  static HWY_INLINE void widen_block(const T* from, float* to) {
    FloatVector v0, v1, v2, v3;
    C::load(from, v0, v1, v2, v3);
    Direct<float>::store(v0, v1, v2, v3, to);
  }

  void store_result() {
    for (std::size_t at = 0; at < length_; at += C::block()) {
      FloatVector v0, v1, v2, v3;
      Direct<float>::load(result_ + at, v0, v1, v2, v3);
      C::encode(v0, v1, v2, v3);
      const std::size_t left = std::min(C::block(), length_ - at);
      for (auto* out : buffers_.outs) {
        auto* const to = reinterpret_cast<T*>(out) + begin_ + at;
        if (left == C::block()) {
          C::store(v0, v1, v2, v3, to);
        } else {
          C::store(v0, v1, v2, v3, padded_);
          std::memcpy(to, padded_, left * sizeof(T));
        }
      }
    }
  }

  const Buffers& buffers_;
  std::size_t begin_ = 0;
  std::size_t length_ = 0;
  HWY_ALIGN float rows_[kRows][kTile];
  HWY_ALIGN float result_[kTile] = {};
  HWY_ALIGN T padded_[kTile] = {};
  std::array<const std::byte*, kRows> row_bytes_;
  std::array<std::byte*, 1> result_bytes_{reinterpret_cast<std::byte*>(result_)};
};

void sum_small_floats(SumTask task, DType dtype, std::size_t divisor, const Buffers& buffers) {
  switch (dtype) {
    case DType::float16: return run_task(task, divisor, SmallSums<Float16s, 11>(buffers));
    case DType::bfloat16: return run_task(task, divisor, SmallSums<Widened<UpperHalf>, 8, BFloat16s>(buffers));
    case DType::float8_e4m3fn: return run_task(task, divisor, SmallSums<Widened<E4M3>, 4>(buffers));
    case DType::float8_e5m2: return run_task(task, divisor, SmallSums<Widened<E5M2>, 3>(buffers));
    default: return;
  }
}

}  // namespace tutti::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tutti::kernels {
namespace {
HWY_EXPORT(sum_small_floats);
}  // namespace

void sum_small_floats(SumTask task, DType dtype, std::size_t divisor, const Buffers& buffers) {
  HWY_DYNAMIC_DISPATCH(sum_small_floats)(task, dtype, divisor, buffers);
}

}  // namespace tutti::kernels
#endif
