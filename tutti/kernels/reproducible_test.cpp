#include "tutti/kernels/reproducible.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tutti/kernels/test_hard_inputs.h"
#include "tutti/kernels/test_reference.h"
#include "tutti/kernels/test_targets.h"

namespace tutti::kernels {
namespace {

using hard::Bytes;
using hard::Inputs;
using ::testing::ElementsAre;

constexpr std::array kFloats{DType::float64,  DType::float32,       DType::float16,
                             DType::bfloat16, DType::float8_e4m3fn, DType::float8_e5m2};

/// Adds the sources of each group to accumulators of its own, in one call or one by one; merges them by twos and threes
/// in an order drawn by lot, cut into pieces; rounds.
Bytes divided_sum(DType dtype, std::size_t count, const std::vector<std::vector<const std::byte*>>& groups,
                  std::size_t divisor, std::mt19937& random) {
  const DType kind = accumulator_of(dtype);
  std::vector<Bytes> sums;
  for (const auto& group : groups) {
    auto& sum = sums.emplace_back(count * size_of(kind));
    if (random() % 2 == 0) {
      accumulate(dtype, group, sum.data(), count);
    } else {
      for (const auto* source : group) {
        accumulate(dtype, {&source, 1}, sum.data(), count);
      }
    }
  }
  while (sums.size() > 1) {
    std::ranges::shuffle(sums, random);
    const std::size_t merged = std::min<std::size_t>(sums.size(), 2 + random() % 2);
    const std::size_t piece = 1 + random() % count;
    for (std::size_t begin = 0; begin < count; begin += piece) {
      std::vector<const std::byte*> from;
      for (std::size_t i = sums.size() - merged; i < sums.size(); ++i) {
        from.push_back(sums[i].data() + begin * size_of(kind));
      }
      auto* const to = sums[sums.size() - merged].data() + begin * size_of(kind);
      reduce({.op = ReduceOp::sum, .dtype = kind}, from, {&to, 1}, std::min(piece, count - begin));
    }
    sums.resize(sums.size() - merged + 1);
  }
  Bytes out(count * size_of(dtype));
  round_accumulators(dtype, sums[0].data(), std::array{out.data()}, count, {.divisor = divisor});
  return out;
}

/// Bit i of `cuts` says whether a group ends after addend i.
std::vector<std::vector<const std::byte*>> cut(const std::vector<const std::byte*>& addends, unsigned cuts) {
  std::vector<std::vector<const std::byte*>> groups(1);
  for (std::size_t i = 0; i < addends.size(); ++i) {
    groups.back().push_back(addends[i]);
    if (((cuts >> i) & 1U) != 0 && i + 1 < addends.size()) {
      groups.emplace_back();
    }
  }
  return groups;
}

void every_division_gives_the_same_bits(DType dtype, std::size_t count) {
  constexpr std::size_t kAddends = 8;
  SCOPED_TRACE(std::string(to_string(dtype)));
  const Inputs inputs(dtype, kAddends, count);
  const auto sum = inputs.at_once(ReduceOp::reproducible_sum);
  const auto mean = inputs.at_once(ReduceOp::reproducible_avg);
  std::mt19937 random(static_cast<unsigned>(count));
  for (unsigned cuts = 0; cuts < 1U << (kAddends - 1); ++cuts) {
    auto addends = inputs.pointers();
    std::ranges::shuffle(addends, random);
    const auto groups = cut(addends, cuts);
    const bool averages = cuts % 4 == 3;
    const auto divided = divided_sum(dtype, count, groups, averages ? kAddends : 1, random);
    ASSERT_EQ(std::memcmp(divided.data(), averages ? mean.data() : sum.data(), sum.size()), 0) << "cuts " << cuts;
    Bytes shuffled(sum.size());
    reduce({.op = ReduceOp::reproducible_sum, .dtype = dtype}, addends, std::array{shuffled.data()}, count);
    ASSERT_EQ(std::memcmp(shuffled.data(), sum.data(), sum.size()), 0) << "cuts " << cuts;
  }
}

/// Some of the addends as they are, the others in sums.
Bytes rounded_together(DType dtype, std::size_t count, const std::vector<const std::byte*>& addends, std::size_t whole,
                       std::size_t sums) {
  std::vector<Bytes> accumulators(sums, Bytes(count * size_of(accumulator_of(dtype))));
  std::vector<const std::byte*> of_sums;
  for (auto& sum : accumulators) {
    of_sums.push_back(sum.data());
  }
  for (std::size_t i = whole; i < addends.size(); ++i) {
    accumulate(dtype, {&addends[i], 1}, accumulators[i % sums].data(), count);
  }
  Bytes out(count * size_of(dtype));
  Bytes twin(out.size());
  const std::array outs{out.data(), twin.data()};
  const SumParts parts{.addends = std::span(addends).first(whole), .sums = of_sums};
  round_all(dtype, parts, outs, count, {.divisor = addends.size()});
  EXPECT_EQ(out, twin);
  Bytes all(count * size_of(accumulator_of(dtype)), std::byte{1});
  add_all(dtype, parts, all.data(), count);
  round_accumulators(dtype, all.data(), std::array{twin.data()}, count, {.divisor = addends.size()});
  EXPECT_EQ(out, twin);
  return out;
}

TEST(Reproducible, AddendsAndSumsAreRoundedTogether) {
  for (const DType dtype : kFloats) {
    SCOPED_TRACE(std::string(to_string(dtype)));
    const Inputs inputs(dtype, 8, 1003);
    const auto mean = inputs.at_once(ReduceOp::reproducible_avg);
    EXPECT_EQ(rounded_together(dtype, 1003, inputs.pointers(), 8, 0), mean);
    EXPECT_EQ(rounded_together(dtype, 1003, inputs.pointers(), 8, 1), mean);
    EXPECT_EQ(rounded_together(dtype, 1003, inputs.pointers(), 5, 1), mean);
    EXPECT_EQ(rounded_together(dtype, 1003, inputs.pointers(), 3, 2), mean);
    EXPECT_EQ(rounded_together(dtype, 1003, inputs.pointers(), 0, 3), mean);
    Bytes nothing(1003 * size_of(dtype), std::byte{1});
    round_all(dtype, {}, std::array{nothing.data()}, 1003);
    EXPECT_EQ(nothing, Bytes(nothing.size()));
  }
}

TEST(Reproducible, EveryDivisionOfTenThousandInputsGivesTheSameBits) {
  for (const DType dtype : kFloats) {
    every_division_gives_the_same_bits(dtype, 10007);
  }
}

TEST(Reproducible, EveryDivisionGivesTheSameBitsOnEveryTarget) {
  on_every_target([] {
    for (const DType dtype : kFloats) {
      every_division_gives_the_same_bits(dtype, 301);
    }
  });
}

/// Against exact numbers: the sum, and means by what is no power of two, too.
void check_values(DType dtype, std::size_t sources, std::size_t count) {
  SCOPED_TRACE(std::string(to_string(dtype)) + " of " + std::to_string(sources) + " sources");
  const Inputs inputs(dtype, sources, count);
  for (const auto op : {ReduceOp::reproducible_sum, ReduceOp::reproducible_avg}) {
    const auto expected = reference::reduce({.op = op, .dtype = dtype}, inputs.pointers(), count);
    on_every_target([&] { ASSERT_EQ(inputs.at_once(op), expected) << to_string(op); });
  }
}

TEST(Reproducible, IsTheRoundedSumOfWhatIsKept) {
  for (const DType dtype : kFloats) {
    for (const std::size_t sources : {1U, 2U, 3U, 4U, 7U, 17U, 35U}) {
      ASSERT_NO_FATAL_FAILURE(check_values(dtype, sources, 2003));
    }
  }
}

/// How far the result is from the exact sum, against the bound that the header gives.
template <class T>
void error_is_bounded(DType dtype, double per_addend) {
  constexpr std::size_t kSources = 13;
  constexpr std::size_t kCount = 5003;
  const Inputs inputs(dtype, kSources, kCount);
  const auto bytes = inputs.at_once(ReduceOp::reproducible_sum);
  const auto sources = inputs.pointers();
  for (std::size_t i = 0; i < kCount; ++i) {
    T result;
    std::memcpy(&result, bytes.data() + i * sizeof(T), sizeof(T));
    if (!std::isfinite(result)) {
      continue;
    }
    reference::Exact error;
    double largest = 0;
    for (const auto* source : sources) {
      T value;
      std::memcpy(&value, source + i * sizeof(T), sizeof(T));
      error.add(value);
      largest = std::max(largest, static_cast<double>(std::fabs(value)));
    }
    const double exact = error.rounded(reference::kFloat64);
    error.add(-static_cast<double>(result));
    const double half_ulp = std::ldexp(std::fabs(exact), -reference::format_of<T>().bits);
    ASSERT_LE(std::fabs(error.rounded(reference::kFloat64)), kSources * per_addend * largest + half_ulp * 1.001) << i;
  }
}

TEST(Reproducible, TheErrorIsBounded) {
  error_is_bounded<float>(DType::float32, 0x1p-32);
  error_is_bounded<double>(DType::float64, 0x1p-64);
}

/// The sum of one element.
template <class T>
T sum_of(DType dtype, const std::vector<T>& addends, ReduceOp op = ReduceOp::reproducible_sum) {
  std::vector<const std::byte*> sources;
  for (const T& addend : addends) {
    sources.push_back(reinterpret_cast<const std::byte*>(&addend));
  }
  T out;
  reduce({.op = op, .dtype = dtype}, sources, std::array{reinterpret_cast<std::byte*>(&out)}, 1);
  return out;
}

float float_sum(const std::vector<float>& addends) { return sum_of(DType::float32, addends); }
double double_sum(const std::vector<double>& addends) { return sum_of(DType::float64, addends); }

TEST(Reproducible, CancellationLosesNothingThatIsKept) {
  EXPECT_EQ(float_sum({0x1p30F, 1, -0x1p30F}), 1);
  EXPECT_EQ(float_sum({0x1p100F, 1, -0x1p100F}), 0);  // more than 64 bits below the largest: not kept
  EXPECT_EQ(double_sum({0x1p60, 1, -0x1p60, 0x1p-3}), 1.125);
  EXPECT_EQ(float_sum({0x1p-149F, -0x1p-126F, 0x1p-126F}), 0x1p-149F);
}

TEST(Reproducible, ABitBelowADoubleCounts) {
  // Half way between two floats, and 2^-21, which a double as large as the sum has no place for.
  const float most = 0x1.8p30F;
  EXPECT_EQ(float_sum({most, most, most, most, most, most, 0x1p9F - 6, 6 + 0x1p-21F}), 0x9p30F + 0x1p10F);
}

TEST(Reproducible, ABitBelowAFloatCountsInSumsOfSmallOnes) {
  const auto sum_of_bfloats = [](std::initializer_list<float> addends) {
    std::vector<std::uint16_t> bits;
    for (const float addend : addends) {
      bits.push_back(narrow<BFloat16>(addend).bits);
    }
    return widen(BFloat16{sum_of(DType::bfloat16, bits)});
  };
  // Half way between two bfloat16, and 2^8, which a float32 as large as the sum has no place for.
  const float most = 0x1.Ap30F;
  EXPECT_EQ(sum_of_bfloats({most, most, most, most, most, 0x1p25F, -0x1.Cp15F, 0x1.C2p15F}), 131 * 0x1p26F);
}

TEST(Reproducible, OnlyTheResultOverflows) {
  const float most = std::numeric_limits<float>::max();
  EXPECT_EQ(float_sum({most, most, -most}), most);
  EXPECT_EQ(float_sum({most, most}), INFINITY);
  EXPECT_EQ(float_sum({-most, 1, -most}), -INFINITY);
  EXPECT_EQ(sum_of<float>(DType::float32, {most, most, most}, ReduceOp::reproducible_avg), most);
  const double largest = std::numeric_limits<double>::max();
  EXPECT_EQ(double_sum({largest, largest, -largest, -1}), largest);
  EXPECT_EQ(double_sum({largest, largest}), INFINITY);
  EXPECT_EQ(sum_of<double>(DType::float64, {-largest, -largest, -largest}, ReduceOp::reproducible_avg), -largest);
}

/// All bits of the largest float32 below each power of two: whatever it is in units of its bin, eight of them may be
/// more than a word holds. Beside them one so small that it takes digits to keep it.
TEST(Reproducible, TheLargestOfEveryExponentAddUp) {
  std::vector<float> numbers;
  for (int exponent = -125; exponent <= 128; ++exponent) {
    numbers.push_back(std::ldexp(0x0.FFFFFFp0F, exponent));
  }
  auto negative = numbers;
  for (auto& number : negative) {
    number = -number;
  }
  const std::vector<float> tiny(numbers.size(), std::numeric_limits<float>::denorm_min());
  const auto* const more = reinterpret_cast<const std::byte*>(numbers.data());
  const auto* const less = reinterpret_cast<const std::byte*>(negative.data());
  const auto* const least = reinterpret_cast<const std::byte*>(tiny.data());
  const std::vector<const std::byte*> addends{more, more, more, less, more, more, more, more, least};
  on_every_target([&] {
    std::vector<float> sums(numbers.size());
    auto* const out = reinterpret_cast<std::byte*>(sums.data());
    reduce({.op = ReduceOp::reproducible_sum, .dtype = DType::float32}, addends, {&out, 1}, numbers.size());
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      EXPECT_EQ(sums[i], static_cast<float>(6.0 * numbers[i])) << numbers[i];
    }
  });
}

TEST(Reproducible, InfinitiesAndNaNs) {
  EXPECT_EQ(float_sum({INFINITY, -3e38F, 1, INFINITY}), INFINITY);
  EXPECT_EQ(double_sum({1, -INFINITY, 1e308, 1e308}), -INFINITY);
  for (const auto& addends :
       {std::vector<float>{INFINITY, -INFINITY, 1}, {std::bit_cast<float>(0xFFC12345U), INFINITY}}) {
    EXPECT_EQ(std::bit_cast<std::uint32_t>(float_sum(addends)), 0x7FC00000U);
  }
}

TEST(Reproducible, ZeroIsPositive) {
  EXPECT_FALSE(std::signbit(float_sum({-0.0F, -0.0F})));
  EXPECT_FALSE(std::signbit(float_sum({1, -1, -0.0F})));
  EXPECT_FALSE(std::signbit(double_sum({-0.0})));
}

TEST(Reproducible, SmallFloatsAddExactly) {
  // The largest float16, and then the smallest one, 2^40 times smaller: only a sum that has both can end with it.
  const auto half = [](float value) { return narrow<Float16>(value).bits; };
  EXPECT_EQ(sum_of<std::uint16_t>(DType::float16, {half(65504), half(0x1p-24F), half(-65504)}), half(0x1p-24F));
}

TEST(Reproducible, HoldsAsManyAddendsAsItSays) {
  // What fills a digit most: just below half a unit of the next bin. Each merge doubles the number of addends.
  const float value = std::nextafter(0x1p35F, 0.0F);
  for (const float addend : {value, -value}) {
    const auto* source = reinterpret_cast<const std::byte*>(&addend);
    std::array<std::uint64_t, 2> sum{};
    auto* const bytes = reinterpret_cast<std::byte*>(sum.data());
    accumulate(DType::float32, {&source, 1}, bytes, 1);
    for (std::size_t addends = 1; addends < kMostAddends; addends *= 2) {
      const std::array<const std::byte*, 2> twice{bytes, bytes};
      reduce({.op = ReduceOp::sum, .dtype = DType::accumulator32}, twice, {&bytes, 1}, 1);
    }
    float result = 0;
    round_accumulators(DType::float32, bytes, std::array{reinterpret_cast<std::byte*>(&result)}, 1);
    EXPECT_EQ(result, addend * static_cast<float>(kMostAddends));
  }
}

TEST(ReproducibleDeathTest, RefusesMore) {
  const float one = 1;
  const std::vector<const std::byte*> sources(kMostAddends + 1, reinterpret_cast<const std::byte*>(&one));
  std::array<std::uint64_t, 2> sum{};
  auto* const bytes = reinterpret_cast<std::byte*>(sum.data());
  EXPECT_DEATH(accumulate(DType::float32, sources, bytes, 1), "more addends");
  EXPECT_DEATH(round_accumulators(DType::float32, bytes, {}, 1, {.divisor = kMostDivisor + 1}), "divisor");
}

TEST(Reproducible, NothingAddedIsZeroBytes) {
  const std::array<float, 3> zeros{0, -0.0F, 0};
  const auto* source = reinterpret_cast<const std::byte*>(zeros.data());
  std::array<std::uint64_t, 6> sums{};
  accumulate(DType::float32, {&source, 1}, reinterpret_cast<std::byte*>(sums.data()), 3);
  EXPECT_THAT(sums, ElementsAre(0, 0, 0, 0, 0, 0));
}

}  // namespace
}  // namespace tutti::kernels
