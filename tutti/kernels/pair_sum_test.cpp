// Sums of two addends, and of small floats that one float32 holds, or two: no digits are cut there, and the bits are
// the same.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tutti/kernels/reproducible.h"
#include "tutti/kernels/test_hard_inputs.h"
#include "tutti/kernels/test_reference.h"
#include "tutti/kernels/test_targets.h"

namespace tutti::kernels {
namespace {

using hard::Bytes;
using hard::Inputs;

template <class T>
std::array<T, 1> pair_of(DType dtype, T a, T b, ReduceOp op = ReduceOp::reproducible_sum) {
  const std::array sources{reinterpret_cast<const std::byte*>(&a), reinterpret_cast<const std::byte*>(&b)};
  std::array<T, 1> out;
  reduce({.op = op, .dtype = dtype}, sources, std::array{reinterpret_cast<std::byte*>(out.data())}, 1);
  return out;
}

void expect_exact(DType dtype, const std::vector<const std::byte*>& sources, std::size_t count) {
  for (const auto op : {ReduceOp::reproducible_sum, ReduceOp::reproducible_avg}) {
    for (const std::size_t divisor : {0U, 2U, 4U, 1024U, 2048U, 3U}) {
      if (op == ReduceOp::reproducible_sum && divisor != 0) {
        continue;
      }
      const Reduction reduction{.op = op, .dtype = dtype, .divisor = divisor};
      const auto expected = reference::reduce(reduction, sources, count);
      on_every_target([&] {
        Bytes out(expected.size());
        reduce(reduction, sources, std::array{out.data()}, count);
        ASSERT_EQ(out, expected) << to_string(dtype) << " " << to_string(op) << " by " << divisor;
      });
    }
  }
}

TEST(PairSum, OfHardOnesIsTheRoundedSumOfWhatIsKept) {
  for (const DType dtype :
       {DType::float64, DType::float32, DType::float16, DType::bfloat16, DType::float8_e4m3fn, DType::float8_e5m2}) {
    for (const std::size_t sources : {1U, 2U}) {
      ASSERT_NO_FATAL_FAILURE(expect_exact(dtype, Inputs(dtype, sources, 20011).pointers(), 20011));
    }
  }
}

TEST(PairSum, OfAnyTwoBytes) {
  std::vector<std::uint8_t> first;
  std::vector<std::uint8_t> second;
  for (unsigned pair = 0; pair < 1U << 16; ++pair) {
    first.push_back(static_cast<std::uint8_t>(pair >> 8));
    second.push_back(static_cast<std::uint8_t>(pair));
  }
  const std::vector sources{reinterpret_cast<const std::byte*>(first.data()),
                            reinterpret_cast<const std::byte*>(second.data())};
  expect_exact(DType::float8_e4m3fn, sources, first.size());
  expect_exact(DType::float8_e5m2, sources, first.size());
}

TEST(PairSum, WhatIsDroppedDoesNotDecideATie) {
  // The lowest number of a bin. Its half bit, and half of the last bit that is kept, which is dropped: so half way.
  EXPECT_EQ(pair_of(DType::float32, 0x1p-29F, 0x1p-38F + 0x1p-53F + 0x1p-61F)[0], 0x1p-29F + 0x1p-38F);
  EXPECT_EQ(pair_of(DType::float64, 0x1p-29, 0x1p-41 + 0x1p-82 + 0x1p-93)[0], 0x1p-29 + 0x1p-41);
  // One more is kept.
  EXPECT_NE(pair_of(DType::float32, 0x1p-29F, 0x1p-38F + 0x1p-53F + 0x1p-60F)[0], 0x1p-29F + 0x1p-38F);
  EXPECT_NE(pair_of(DType::float64, 0x1p-29, 0x1p-41 + 0x1p-82 + 0x1p-92)[0], 0x1p-29 + 0x1p-41);
}

TEST(PairSum, AMeanOverflowsNowhere) {
  const double largest = std::numeric_limits<double>::max();
  EXPECT_EQ(pair_of(DType::float64, largest, largest, ReduceOp::reproducible_avg)[0], largest);
  const auto most = std::uint16_t{0x7F7F};
  EXPECT_EQ(pair_of(DType::bfloat16, most, most, ReduceOp::reproducible_avg)[0], most);
  // Half of the smallest is half way to zero, which is even; the sign stays.
  const double smallest = -std::numeric_limits<double>::denorm_min();
  const auto half = pair_of(DType::float64, smallest, 0.0, ReduceOp::reproducible_avg)[0];
  EXPECT_EQ(std::bit_cast<std::uint64_t>(half), std::uint64_t{1} << 63);
}

/// Blocks of numbers about as far apart as there is room for. Of two small ones only the last bit stays, which decides
/// ties that the others make.
template <class T>
std::vector<Bytes> nearly_too_wide(int room, std::size_t sources, std::size_t count) {
  const auto format = reference::format_of<T>();
  const double last = std::ldexp(1.0, 1 - format.bits);
  std::mt19937 random(static_cast<unsigned>(sources));
  std::vector<Bytes> result(sources, Bytes(count * sizeof(T)));
  int top = 0;
  int wide = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (i % 128 == 0) {
      const int most = std::min(60, std::ilogb(format.largest) - 5);
      top =
          random() % 2 == 0 ? 3 : hard::between(random, std::max(-60, format.lowest + 4), most);  // 3: lowest of a bin
      wide = room + hard::between(random, -1, 4);
    }
    const double small = std::ldexp(random() % 2 == 0 ? 1 : -1, -wide);
    std::vector<double> values{small * (2 - last), small * (2 * last - 2)};
    while (values.size() < sources) {
      values.push_back(2 - last * hard::between(random, 3, 6));
    }
    std::ranges::shuffle(values, random);
    for (std::size_t source = 0; source < sources; ++source) {
      const auto value = hard::from_double<T>(std::ldexp(values[source], top));
      std::memcpy(result[source].data() + i * sizeof(T), &value, sizeof(T));
    }
  }
  return result;
}

TEST(SmallSum, OfWhatOneOrTwoFloatsJustHold) {
  for (const DType dtype : {DType::float16, DType::bfloat16, DType::float8_e4m3fn, DType::float8_e5m2}) {
    for (const std::size_t sources : {3U, 4U, 5U, 8U, 9U, 16U}) {
      reference::with_type(dtype, [&]<class T>(T) {
        if constexpr (reference::Small<T>) {
          const int bits = reference::format_of<T>().bits;
          const int carried = std::bit_width(sources - 1);
          for (const int room : {24 - bits - carried, 48 - bits - 2 * carried, 32 - bits}) {
            const auto inputs = nearly_too_wide<T>(room, sources, 1501);
            std::vector<const std::byte*> pointers;
            for (const auto& input : inputs) {
              pointers.push_back(input.data());
            }
            ASSERT_NO_FATAL_FAILURE(expect_exact(dtype, pointers, 1501)) << sources << " sources, room for " << room;
          }
        }
      });
    }
  }
}

TEST(SmallSum, OnlyTheResultOverflows) {
  for (const auto& [dtype, most] : {std::pair(DType::bfloat16, 0x7F7F), std::pair(DType::float16, 0x7BFF)}) {
    const std::vector<std::uint16_t> large(301, static_cast<std::uint16_t>(most));
    const std::vector<std::uint16_t> negative(301, static_cast<std::uint16_t>(most | 0x8000));
    const auto* const first = reinterpret_cast<const std::byte*>(large.data());
    ASSERT_NO_FATAL_FAILURE(
        expect_exact(dtype, {first, first, reinterpret_cast<const std::byte*>(negative.data())}, large.size()));
  }
}

}  // namespace
}  // namespace tutti::kernels
