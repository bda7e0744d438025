/// Every operation on every type, on every kind of vector that this processor has, against plain loops: bit for bit.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hwy/targets.h>

#include "tutti/kernels/test_reference.h"
#include "tutti/kernels/test_targets.h"

namespace tutti::kernels {
namespace {

constexpr std::byte kUntouched{0xA5};

template <class F>
void for_every_reduction(F&& check) {
  for (int op = 0; op < kReduceOps; ++op) {
    for (int dtype = 0; dtype < kDTypes; ++dtype) {
      const Reduction reduction{.op = static_cast<ReduceOp>(op), .dtype = static_cast<DType>(dtype)};
      if (can_reduce(reduction.op, reduction.dtype).ok()) {
        SCOPED_TRACE(std::string(to_string(reduction.op)) + " of " + std::string(to_string(reduction.dtype)));
        check(reduction);
      }
    }
  }
}

/// A buffer that begins `shift` elements after an aligned address, with memory on both sides that nobody may write to.
class Buffer {
 public:
  Buffer(DType dtype, std::size_t count, std::size_t shift)
      : begin_(kMargin + shift * size_of(dtype)), bytes_(count * size_of(dtype)), memory_(begin_ + bytes_ + kMargin) {
    std::ranges::fill(memory_, kUntouched);
  }

  std::byte* data() { return memory_.data() + begin_; }
  std::vector<std::byte> content() const {
    const auto begin = memory_.begin() + static_cast<std::ptrdiff_t>(begin_);
    return {begin, begin + static_cast<std::ptrdiff_t>(bytes_)};
  }
  bool is_intact_around() const {
    const auto begin = memory_.begin() + static_cast<std::ptrdiff_t>(begin_);
    const auto untouched = [](std::byte byte) { return byte == kUntouched; };
    return std::all_of(memory_.begin(), begin, untouched) &&
           std::all_of(begin + static_cast<std::ptrdiff_t>(bytes_), memory_.end(), untouched);
  }

 private:
  static constexpr std::size_t kMargin = 256;

  std::size_t begin_;
  std::size_t bytes_;
  std::vector<std::byte> memory_;
};

/// What arithmetic is most likely to get wrong: zeros of both signs, the smallest and largest numbers, infinities, NaNs
/// with and without sign and load, 1, and its neighbour.
template <class T>
std::vector<T> special_values() {
  if constexpr (std::floating_point<T>) {
    using Limits = std::numeric_limits<T>;
    const T nan = Limits::quiet_NaN();
    return {0,
            T(-0.0),
            Limits::denorm_min(),
            -Limits::min(),
            Limits::max(),
            -Limits::max(),
            Limits::infinity(),
            -Limits::infinity(),
            nan,
            -nan,
            T(std::nan("0x1234")),
            1,
            1 + Limits::epsilon(),
            -1};
  } else if constexpr (reference::Small<T>) {
    std::vector<T> values;
    for (const float value : special_values<float>()) {
      values.push_back(narrow<T>(value));
    }
    using Bits = decltype(T::bits);
    values.push_back({Bits{1}});                                              // the smallest subnormal number
    values.push_back({static_cast<Bits>(std::numeric_limits<Bits>::max())});  // a NaN that is not the usual one
    return values;
  } else if constexpr (std::integral<T>) {
    return {0, 1, std::numeric_limits<T>::min(), std::numeric_limits<T>::max(), static_cast<T>(-1)};
  } else if constexpr (std::same_as<T, reference::Boolean>) {
    return {{0}, {1}, {2}, {0x80}, {0xFF}};
  } else if constexpr (reference::Summed<T>) {
    const std::uint64_t special = std::uint64_t{127} << 57;  // an infinity, and a NaN
    return {{}, {{special + 1}}, {{special + 1, 1}}};
  } else {
    std::vector<T> values;
    for (const auto part : special_values<typename T::value_type>()) {
      values.emplace_back(part, -part);
    }
    return values;
  }
}

template <class T>
T ordinary_value(std::mt19937& random) {
  std::normal_distribution<float> normal;
  if constexpr (reference::Small<T>) {
    return narrow<T>(normal(random));
  } else if constexpr (reference::Complex<T>) {
    return T(normal(random), normal(random));
  } else if constexpr (std::same_as<T, reference::Boolean>) {
    return {static_cast<std::uint8_t>(random() % 2)};
  } else if constexpr (reference::Summed<T>) {
    T value{};
    for (std::size_t digit = 0; digit < (sizeof(T) == 16 ? 2 : 3); ++digit) {
      value.words[digit] = (std::uint64_t{random()} << 10) - (std::uint64_t{1} << 41);
    }
    value.words[0] += (29 + random() % 5) << 57;
    return value;
  } else {
    return static_cast<T>(100 * normal(random));
  }
}

/// Ordinary numbers, special ones, and any bits at all.
void fill(DType dtype, std::byte* data, std::size_t count, std::mt19937& random) {
  reference::with_type(dtype, [&]<class T>(T) {
    const auto special = special_values<T>();
    for (std::size_t i = 0; i < count; ++i) {
      auto* element = data + i * sizeof(T);
      const auto kind = random() % 4;
      if (kind == 0) {
        std::generate(element, element + sizeof(T), [&] { return static_cast<std::byte>(random()); });
      } else {
        const T value = kind == 1 ? special[random() % special.size()] : ordinary_value<T>(random);
        std::memcpy(element, &value, sizeof(T));
      }
    }
  });
}

std::vector<Buffer> random_sources(DType dtype, std::size_t sources, std::size_t count) {
  std::mt19937 random(static_cast<unsigned>(count * 17 + sources));
  std::vector<Buffer> buffers;
  for (std::size_t source = 0; source < sources; ++source) {
    fill(dtype, buffers.emplace_back(dtype, count, 3 * source + 1).data(), count, random);
  }
  return buffers;
}

std::vector<std::byte*> addresses(std::vector<Buffer>& buffers) {
  std::vector<std::byte*> result;
  for (auto& buffer : buffers) {
    result.push_back(buffer.data());
  }
  return result;
}

std::vector<const std::byte*> constant(const std::vector<std::byte*>& addresses) {
  return {addresses.begin(), addresses.end()};
}

std::vector<double> some_factors(std::size_t sources) {
  std::vector<double> factors;
  for (std::size_t source = 0; source < sources; ++source) {
    factors.push_back(source % 3 == 2 ? -0.1 : 1.0 / static_cast<double>(source + 3));
  }
  return factors;
}

void check_one(Reduction reduction, std::size_t sources, std::size_t count) {
  SCOPED_TRACE(std::to_string(count) + " elements of " + std::to_string(sources) + " sources");
  const auto factors = some_factors(sources);
  reduction.factors = factors;
  auto buffers = random_sources(reduction.dtype, sources, count);
  const auto from = constant(addresses(buffers));
  const auto expected = reference::reduce(reduction, from, count);
  on_every_target([&] {
    for (const std::size_t outs : {1U, 2U, 3U}) {
      std::vector<Buffer> results;
      for (std::size_t out = 0; out < outs; ++out) {
        results.emplace_back(reduction.dtype, count, 5 * out + 2);
      }
      reduce(reduction, from, addresses(results), count);
      for (const auto& result : results) {
        ASSERT_EQ(result.content(), expected) << outs << " outs";
        ASSERT_TRUE(result.is_intact_around());
      }
    }
  });
}

TEST(ReduceEvery, MatchesPlainLoops) {
  for_every_reduction([](const Reduction& reduction) {
    for (const std::size_t sources : {1U, 2U, 3U, 5U, 16U}) {
      for (const std::size_t count : {0U, 1U, 3U, 63U, 64U, 65U, 1003U}) {
        ASSERT_NO_FATAL_FAILURE(check_one(reduction, sources, count));
      }
    }
  });
}

TEST(ReduceEvery, OutsMayBeTheSources) {
  for_every_reduction([](Reduction reduction) {
    for (const std::size_t sources : {1U, 2U, 3U}) {
      constexpr std::size_t kCount = 301;
      const auto factors = some_factors(sources);
      reduction.factors = factors;
      auto untouched = random_sources(reduction.dtype, sources, kCount);
      const auto expected = reference::reduce(reduction, constant(addresses(untouched)), kCount);
      on_every_target([&] {
        auto buffers = random_sources(reduction.dtype, sources, kCount);
        const auto outs = addresses(buffers);
        reduce(reduction, constant(outs), outs, kCount);
        for (const auto& buffer : buffers) {
          ASSERT_EQ(buffer.content(), expected);
        }
      });
    }
  });
}

TEST(ReduceEvery, PiecesGiveTheSameBits) {
  for_every_reduction([](Reduction reduction) {
    constexpr std::size_t kSources = 3;
    constexpr std::size_t kCount = 501;
    const auto factors = some_factors(kSources);
    reduction.factors = factors;
    auto buffers = random_sources(reduction.dtype, kSources, kCount);
    const auto from = constant(addresses(buffers));
    const auto expected = reference::reduce(reduction, from, kCount);
    Buffer pieces(reduction.dtype, kCount, 1);
    std::mt19937 random(23);
    for (std::size_t begin = 0; begin < kCount;) {
      const std::size_t length = std::min<std::size_t>(1 + random() % 99, kCount - begin);
      const std::size_t offset = begin * size_of(reduction.dtype);
      const std::array<const std::byte*, kSources> piece{from[0] + offset, from[1] + offset, from[2] + offset};
      const std::array<std::byte*, 1> out{pieces.data() + offset};
      reduce(reduction, piece, out, length);
      begin += length;
    }
    ASSERT_EQ(pieces.content(), expected);
  });
}

/// Every bit pattern, times factors that make ties, overflows and subnormal results of it.
template <class Small>
void every_pattern_is_rounded(DType dtype) {
  using Bits = decltype(Small::bits);
  std::vector<Bits> patterns;
  for (std::uint32_t bits = 0; bits <= std::numeric_limits<Bits>::max(); ++bits) {
    patterns.push_back(static_cast<Bits>(bits));
  }
  const std::array<const std::byte*, 1> from{reinterpret_cast<const std::byte*>(patterns.data())};
  for (const double factor : {1.0, -0.5, 1.5, 1.25, 1.0 / 3, 1e-3, 1e-5, 1e-37, 1000.1, std::nan("0x7FFFFFFFF")}) {
    const Reduction reduction{.op = ReduceOp::premul_sum, .dtype = dtype, .factors = {&factor, 1}};
    const auto expected = reference::reduce(reduction, from, patterns.size());
    on_every_target([&] {
      Buffer out(dtype, patterns.size(), 1);
      reduce(reduction, from, std::array{out.data()}, patterns.size());
      ASSERT_EQ(out.content(), expected) << to_string(dtype) << " times " << factor;
    });
  }
}

TEST(ReduceEvery, SmallFloatsAreRoundedAsAlone) {
  every_pattern_is_rounded<Float16>(DType::float16);
  every_pattern_is_rounded<BFloat16>(DType::bfloat16);
  every_pattern_is_rounded<Float8E4M3>(DType::float8_e4m3fn);
  every_pattern_is_rounded<Float8E5M2>(DType::float8_e5m2);
}

TEST(ReduceEvery, ThereIsMoreThanOneTarget) {
  // Else the tests above compare a kernel with itself; on x86-64 there is always one without vectors.
  EXPECT_GT(hwy::SupportedAndGeneratedTargets().size() + (HWY_ARCH_X86 ? 0 : 1), 1U);
}

}  // namespace
}  // namespace tutti::kernels
