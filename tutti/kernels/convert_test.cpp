#include "tutti/kernels/convert.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "tutti/kernels/small_float.h"

namespace tutti::kernels {
namespace {

/// Every value of a format there and back, one more than a whole number of vectors, against small_float.h.
template <class Small>
void check_all(DType dtype) {
  using Bits = decltype(Small::bits);
  std::vector<Small> all;
  for (std::uint32_t bits = 0; bits <= static_cast<Bits>(~Bits{0}); ++bits) {
    all.push_back({static_cast<Bits>(bits)});
  }
  all.push_back({1});
  std::vector<float> wide(all.size());
  to_float32(dtype, reinterpret_cast<const std::byte*>(all.data()), wide.data(), all.size());
  std::vector<Small> back(all.size());
  from_float32(dtype, wide.data(), reinterpret_cast<std::byte*>(back.data()), all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    const float expected = widen(all[i]);
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(wide[i])) << i;
      EXPECT_TRUE(std::isnan(widen(back[i]))) << i;
    } else {
      EXPECT_EQ(std::bit_cast<std::uint32_t>(wide[i]), std::bit_cast<std::uint32_t>(expected)) << i;
      EXPECT_EQ(back[i].bits, all[i].bits) << i;
    }
  }
}

/// Floats of all sizes, rounded.
template <class Small>
void check_rounding(DType dtype) {
  std::vector<float> wide;
  for (std::uint32_t bits = 0; bits < 0xFFFF0000; bits += 0x8765) {
    wide.push_back(std::bit_cast<float>(bits));
  }
  std::vector<Small> small(wide.size());
  from_float32(dtype, wide.data(), reinterpret_cast<std::byte*>(small.data()), wide.size());
  for (std::size_t i = 0; i < wide.size(); ++i) {
    const auto expected = narrow<Small>(wide[i]);
    if (std::isnan(widen(expected))) {
      EXPECT_TRUE(std::isnan(widen(small[i]))) << wide[i];
    } else {
      EXPECT_EQ(small[i].bits, expected.bits) << wide[i];
    }
  }
}

TEST(Convert, EveryValueThereAndBack) {
  check_all<Float16>(DType::float16);
  check_all<BFloat16>(DType::bfloat16);
  check_all<Float8E4M3>(DType::float8_e4m3fn);
  check_all<Float8E5M2>(DType::float8_e5m2);
}

TEST(Convert, RoundsToNearestEven) {
  check_rounding<Float16>(DType::float16);
  check_rounding<BFloat16>(DType::bfloat16);
  check_rounding<Float8E4M3>(DType::float8_e4m3fn);
  check_rounding<Float8E5M2>(DType::float8_e5m2);
}

}  // namespace
}  // namespace tutti::kernels
