#include "tutti/kernels/small_float.h"

#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <random>

#include <gtest/gtest.h>

namespace tutti::kernels {
namespace {

/// Every bit pattern, widened and narrowed, is itself (NaNs stay NaNs).
template <class Small>
void every_value_survives(unsigned patterns) {
  for (unsigned bits = 0; bits < patterns; ++bits) {
    const Small small{static_cast<decltype(Small::bits)>(bits)};
    const float wide = widen(small);
    if (std::isnan(wide)) {
      EXPECT_TRUE(std::isnan(widen(narrow<Small>(wide)))) << bits;
    } else {
      ASSERT_EQ(narrow<Small>(wide).bits, small.bits) << bits << " " << wide;
    }
  }
}

/// The nearest value there is, ties to the even pattern: checked against all neighbours.
template <class Small>
void rounds_to_nearest(float largest) {
  std::mt19937 random(17);
  std::uniform_real_distribution<float> exponent(-30, 17);
  for (int i = 0; i < 20011; ++i) {
    const float value =
        std::ldexp(1.0F + static_cast<float>(random() % 8388608) / 8388608.0F, static_cast<int>(exponent(random)));
    if (value > largest) {
      continue;
    }
    const auto rounded = narrow<Small>(value);
    const auto error = std::fabs(static_cast<double>(widen(rounded)) - value);
    for (const int step : {-1, 1}) {
      const Small neighbour{static_cast<decltype(Small::bits)>(rounded.bits + step)};
      const float there = widen(neighbour);
      if (std::isnan(there) || std::isinf(there) || there < 0) {
        continue;
      }
      const auto other = std::fabs(static_cast<double>(there) - value);
      ASSERT_TRUE(error < other || (error == other && rounded.bits % 2 == 0)) << value;
    }
  }
}

TEST(SmallFloat, EveryValueSurvives) {
  every_value_survives<Float16>(1U << 16);
  every_value_survives<BFloat16>(1U << 16);
  every_value_survives<Float8E4M3>(1U << 8);
  every_value_survives<Float8E5M2>(1U << 8);
}

TEST(SmallFloat, RoundsToNearestEven) {
  rounds_to_nearest<Float16>(65504);
  rounds_to_nearest<BFloat16>(1e30F);
  rounds_to_nearest<Float8E4M3>(448);
  rounds_to_nearest<Float8E5M2>(57344);
}

TEST(SmallFloat, KnownPatterns) {
  EXPECT_EQ(narrow<Float16>(1.0F).bits, 0x3C00);
  EXPECT_EQ(narrow<Float16>(-2.0F).bits, 0xC000);
  EXPECT_EQ(narrow<Float16>(65504.0F).bits, 0x7BFF);
  EXPECT_EQ(narrow<Float16>(5.9604645e-8F).bits, 0x0001);
  EXPECT_EQ(narrow<BFloat16>(1.0F).bits, 0x3F80);
  EXPECT_EQ(narrow<Float8E4M3>(448.0F).bits, 0x7E);
  EXPECT_EQ(narrow<Float8E4M3>(1.0F).bits, 0x38);
  EXPECT_EQ(narrow<Float8E5M2>(57344.0F).bits, 0x7B);
}

TEST(SmallFloat, OverflowAndTinyValues) {
  EXPECT_TRUE(std::isinf(widen(narrow<Float16>(65520.0F))));
  EXPECT_EQ(widen(narrow<Float16>(65519.0F)), 65504.0F);
  EXPECT_TRUE(std::isinf(widen(narrow<Float8E5M2>(1e9F))));
  EXPECT_TRUE(std::isnan(widen(narrow<Float8E4M3>(1e9F))));
  EXPECT_TRUE(std::isnan(widen(narrow<Float8E4M3>(INFINITY))));
  EXPECT_TRUE(std::isinf(widen(narrow<BFloat16>(std::numeric_limits<float>::max()))));
  EXPECT_EQ(narrow<Float16>(1e-10F).bits, 0);
  EXPECT_EQ(narrow<Float16>(-1e-10F).bits, 0x8000);
  EXPECT_TRUE(std::signbit(widen(narrow<Float8E4M3>(-0.0F))));
}

}  // namespace
}  // namespace tutti::kernels
