#include "tutti/kernels/reduce.h"

#include <array>
#include <bit>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tutti/kernels/small_float.h"

namespace tutti::kernels {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <class T>
std::vector<T> reduced(ReduceOp op, DType dtype, const std::vector<std::vector<T>>& sources,
                       const std::vector<double>& factors = {}) {
  std::vector<const std::byte*> pointers;
  for (const auto& source : sources) {
    pointers.push_back(reinterpret_cast<const std::byte*>(source.data()));
  }
  std::vector<T> out(sources[0].size());
  const std::array<std::byte*, 1> outs{reinterpret_cast<std::byte*>(out.data())};
  reduce({.op = op, .dtype = dtype, .factors = factors}, pointers, outs, out.size());
  return out;
}

TEST(Reduce, FloatsInEveryOp) {
  const std::vector<std::vector<float>> sources{{1, -2, 3}, {4, 5, -6}, {0.5, 2, 9}};
  EXPECT_THAT(reduced(ReduceOp::sum, DType::float32, sources), ElementsAre(5.5, 5, 6));
  EXPECT_THAT(reduced(ReduceOp::avg, DType::float32, sources), ElementsAre(5.5F / 3, 5.0F / 3, 2));
  EXPECT_THAT(reduced(ReduceOp::product, DType::float32, sources), ElementsAre(2, -20, -162));
  EXPECT_THAT(reduced(ReduceOp::min, DType::float32, sources), ElementsAre(0.5, -2, -6));
  EXPECT_THAT(reduced(ReduceOp::max, DType::float32, sources), ElementsAre(4, 5, 9));
}

TEST(Reduce, WritesEveryOut) {
  const std::vector<std::int32_t> source{5, 7, 9};
  std::vector<std::int32_t> first(3);
  std::vector<std::int32_t> second(3);
  const std::array<const std::byte*, 1> sources{reinterpret_cast<const std::byte*>(source.data())};
  const std::array<std::byte*, 2> outs{reinterpret_cast<std::byte*>(first.data()),
                                       reinterpret_cast<std::byte*>(second.data())};
  reduce({.op = ReduceOp::sum, .dtype = DType::int32}, sources, outs, 3);
  EXPECT_THAT(first, ElementsAre(5, 7, 9));
  EXPECT_THAT(second, ElementsAre(5, 7, 9));
}

TEST(Reduce, MultipliesEachSourceBeforeItIsAdded) {
  EXPECT_THAT(reduced<float>(ReduceOp::premul_sum, DType::float32, {{1, 2}, {10, 20}, {4, 8}}, {3, 0.5, -1}),
              ElementsAre(4, 8));
  using C = std::complex<float>;
  EXPECT_THAT(reduced<C>(ReduceOp::premul_sum, DType::complex64, {{C(1, 2)}, {C(4, -4)}}, {3, 0.5}),
              ElementsAre(C(5, 4)));
}

TEST(Reduce, AProductIsRoundedBeforeItIsAdded) {
  // In one step, with one rounding, this would be 2^-46.
  const float next = 1 + std::numeric_limits<float>::epsilon();
  const float square = next * next;
  EXPECT_THAT(reduced<float>(ReduceOp::premul_sum, DType::float32, {{square}, {next}}, {-1, next}), ElementsAre(0));
}

TEST(Reduce, ANaNThatComesOutIsAlwaysTheSame) {
  const float loaded = std::bit_cast<float>(0xFFC12345U);
  const float other = std::bit_cast<float>(0x7F812345U);
  for (const auto op : {ReduceOp::sum, ReduceOp::avg, ReduceOp::product, ReduceOp::min, ReduceOp::max}) {
    for (const float result : reduced<float>(op, DType::float32, {{loaded, other, 1}, {other, loaded, loaded}})) {
      EXPECT_EQ(std::bit_cast<std::uint32_t>(result), 0x7FC00000U) << to_string(op);
    }
  }
}

TEST(Reduce, LongerThanATileAndOdd) {
  constexpr std::size_t kCount = 4099;
  std::vector<std::vector<double>> sources(3, std::vector<double>(kCount));
  for (std::size_t i = 0; i < kCount; ++i) {
    for (std::size_t s = 0; s < 3; ++s) {
      sources[s][i] = static_cast<double>(i * (s + 1));
    }
  }
  const auto sum = reduced(ReduceOp::sum, DType::float64, sources);
  for (std::size_t i = 0; i < kCount; ++i) {
    ASSERT_EQ(sum[i], static_cast<double>(6 * i));
  }
}

TEST(Reduce, OutputMayBeASource) {
  std::vector<float> first{1, 2, 3};
  const std::vector<float> second{10, 20, 30};
  const std::vector<const std::byte*> sources{reinterpret_cast<const std::byte*>(second.data()),
                                              reinterpret_cast<const std::byte*>(first.data())};
  const std::array<std::byte*, 1> outs{reinterpret_cast<std::byte*>(first.data())};
  reduce({.op = ReduceOp::sum, .dtype = DType::float32}, sources, outs, 3);
  EXPECT_THAT(first, ElementsAre(11, 22, 33));
}

TEST(Reduce, MinAndMaxKeepNan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const auto op : {ReduceOp::min, ReduceOp::max}) {
    const auto result = reduced<float>(op, DType::float32, {{nan, 1, 2}, {1, nan, 3}});
    EXPECT_TRUE(std::isnan(result[0]));
    EXPECT_TRUE(std::isnan(result[1]));
    EXPECT_FALSE(std::isnan(result[2]));
  }
}

TEST(Reduce, SmallFloatsAreRoundedOnce) {
  // 1 + eps/2 + eps/2 is 1 when each step is rounded to bfloat16, and 1 + eps when only the end is.
  const auto small = narrow<BFloat16>(1.0F / 256);
  const std::vector<std::vector<std::uint16_t>> sources{{narrow<BFloat16>(1.0F).bits}, {small.bits}, {small.bits}};
  const auto sum = reduced(ReduceOp::sum, DType::bfloat16, sources);
  EXPECT_EQ(widen(BFloat16{sum[0]}), 1.0F + 1.0F / 128);
}

TEST(Reduce, EverySmallFloatAverages) {
  const auto check = [](DType dtype, auto small) {
    using Small = decltype(small);
    using Bits = decltype(Small::bits);
    const std::vector<std::vector<Bits>> sources{
        {narrow<Small>(1).bits}, {narrow<Small>(4).bits}, {narrow<Small>(7).bits}};
    EXPECT_EQ(widen(Small{reduced(ReduceOp::avg, dtype, sources)[0]}), 4.0F) << to_string(dtype);
  };
  check(DType::float16, Float16{});
  check(DType::bfloat16, BFloat16{});
  check(DType::float8_e4m3fn, Float8E4M3{});
  check(DType::float8_e5m2, Float8E5M2{});
}

template <class T>
void integers_wrap_and_combine(DType dtype) {
  const T most = std::numeric_limits<T>::max();
  const std::vector<std::vector<T>> sources{{most, 6, 12}, {1, 3, 10}};
  EXPECT_EQ(reduced(ReduceOp::sum, dtype, sources)[0], std::numeric_limits<T>::min()) << to_string(dtype);
  EXPECT_EQ(reduced(ReduceOp::product, dtype, sources)[1], 18);
  EXPECT_EQ(reduced(ReduceOp::min, dtype, sources)[1], 3);
  EXPECT_EQ(reduced(ReduceOp::max, dtype, sources)[2], 12);
  EXPECT_EQ(reduced(ReduceOp::band, dtype, sources)[2], 8);
  EXPECT_EQ(reduced(ReduceOp::bor, dtype, sources)[2], 14);
  EXPECT_EQ(reduced(ReduceOp::bxor, dtype, sources)[2], 6);
}

TEST(Reduce, EveryInteger) {
  integers_wrap_and_combine<std::int64_t>(DType::int64);
  integers_wrap_and_combine<std::int32_t>(DType::int32);
  integers_wrap_and_combine<std::int16_t>(DType::int16);
  integers_wrap_and_combine<std::int8_t>(DType::int8);
  integers_wrap_and_combine<std::uint64_t>(DType::uint64);
  integers_wrap_and_combine<std::uint32_t>(DType::uint32);
  integers_wrap_and_combine<std::uint16_t>(DType::uint16);
  integers_wrap_and_combine<std::uint8_t>(DType::uint8);
}

TEST(Reduce, BoolIsLogical) {
  const std::vector<std::vector<std::uint8_t>> sources{{0, 1, 2, 0}, {0, 0, 4, 1}};
  EXPECT_THAT(reduced(ReduceOp::sum, DType::boolean, sources), ElementsAre(0, 1, 1, 1));
  EXPECT_THAT(reduced(ReduceOp::max, DType::boolean, sources), ElementsAre(0, 1, 1, 1));
  EXPECT_THAT(reduced(ReduceOp::product, DType::boolean, sources), ElementsAre(0, 0, 1, 0));
  EXPECT_THAT(reduced(ReduceOp::min, DType::boolean, sources), ElementsAre(0, 0, 1, 0));
  EXPECT_THAT(reduced(ReduceOp::bxor, DType::boolean, sources), ElementsAre(0, 1, 0, 1));
}

TEST(Reduce, ComplexNumbers) {
  using C = std::complex<double>;
  const std::vector<std::vector<C>> sources{{C(1, 2)}, {C(3, -1)}};
  EXPECT_EQ(reduced(ReduceOp::sum, DType::complex128, sources)[0], C(4, 1));
  EXPECT_EQ(reduced(ReduceOp::product, DType::complex128, sources)[0], C(5, 5));
  EXPECT_EQ(reduced(ReduceOp::avg, DType::complex128, sources)[0], C(2, 0.5));
}

TEST(Reduce, ASingleSourceIsCopied) {
  EXPECT_THAT(reduced<float>(ReduceOp::avg, DType::float32, {{3, 5}}), ElementsAre(3, 5));
}

TEST(CanReduce, RefusesWithASentence) {
  EXPECT_THAT(can_reduce(ReduceOp::avg, DType::int32).error().message, HasSubstr("avg of int32: the mean of whole"));
  EXPECT_THAT(can_reduce(ReduceOp::avg, DType::boolean).error().message, HasSubstr("sum and divide"));
  EXPECT_THAT(can_reduce(ReduceOp::min, DType::complex64).error().message, HasSubstr("no order"));
  EXPECT_THAT(can_reduce(ReduceOp::premul_sum, DType::int64).error().message, HasSubstr("multiply before and use sum"));
  EXPECT_THAT(can_reduce(ReduceOp::premul_sum, DType::boolean).error().message, HasSubstr("premul_sum of bool"));
  EXPECT_THAT(can_reduce(ReduceOp::reproducible_sum, DType::int8).error().message, HasSubstr("as they are; use sum"));
  EXPECT_THAT(can_reduce(ReduceOp::reproducible_avg, DType::int8).error().message, HasSubstr("mean of whole"));
  EXPECT_THAT(can_reduce(ReduceOp::max, DType::accumulator32).error().message, HasSubstr("only be merged"));
  EXPECT_THAT(can_reduce(ReduceOp::bxor, DType::float16).error().message, HasSubstr("use an integer type"));
}

TEST(CanReduce, TheRestIsPossible) {
  int possible = 0;
  for (int op = 0; op < kReduceOps; ++op) {
    for (int dtype = 0; dtype < kDTypes; ++dtype) {
      possible += can_reduce(static_cast<ReduceOp>(op), static_cast<DType>(dtype)).ok() ? 1 : 0;
    }
  }
  // 17 types: sum and product for all; avg and premul_sum for 6 floats and 2 complex; min and max for all but complex;
  // 3 bitwise for 9. Reproducible sums and means for floats and complex; sums for 2 kinds of accumulators.
  EXPECT_EQ(possible, 2 * 17 + 2 * 8 + 2 * 15 + 3 * 9 + 2 * 8 + 2);
}

TEST(DTypes, SizesAndNames) {
  EXPECT_EQ(size_of(DType::complex128), 16U);
  EXPECT_EQ(size_of(DType::boolean), 1U);
  EXPECT_EQ(size_of(DType::accumulator32), 16U);
  EXPECT_EQ(size_of(DType::accumulator64), 32U);
  EXPECT_EQ(to_string(DType::accumulator64), "accumulator64");
  EXPECT_EQ(to_string(ReduceOp::reproducible_avg), "reproducible_avg");
  EXPECT_EQ(to_string(DType::float8_e5m2), "float8_e5m2");
  EXPECT_EQ(to_string(ReduceOp::bxor), "bxor");
  EXPECT_EQ(to_string(ReduceOp::premul_sum), "premul_sum");
}

}  // namespace
}  // namespace tutti::kernels
