#include "tutti/gradient/layout.h"

#include <numeric>

#include <gtest/gtest.h>

namespace tutti::gradient {
namespace {

std::vector<std::size_t> backwards(std::size_t count) {
  std::vector<std::size_t> order(count);
  std::iota(order.rbegin(), order.rend(), 0);
  return order;
}

std::vector<std::vector<std::size_t>> parameters_of(const std::vector<BucketLayout>& buckets) {
  std::vector<std::vector<std::size_t>> all;
  for (const auto& bucket : buckets) {
    auto& parameters = all.emplace_back();
    for (const auto& slot : bucket.slots) {
      parameters.push_back(slot.parameter);
    }
  }
  return all;
}

using Parts = std::vector<std::vector<std::size_t>>;

TEST(Layout, FillsBucketsInTheOrderOfArrival) {
  const std::vector<ParameterSize> parameters(7, {.bytes = 100});  // each takes 128
  const auto buckets = lay_out(parameters, backwards(7), {.first = 128, .others = 300});
  EXPECT_EQ(parameters_of(buckets), (Parts{{6}, {5, 4, 3}, {2, 1}, {0}}));
  EXPECT_EQ(buckets[1].bytes, 384U);
  EXPECT_EQ(buckets[1].slots[2].offset, 256U);
}

TEST(Layout, KindsHaveBucketsOfTheirOwnInTheOrderTheyFill) {
  const std::vector<ParameterSize> parameters{{64, 0}, {64, 1}, {64, 0}, {64, 1}, {64, 0}};
  const auto buckets = lay_out(parameters, backwards(5), {.first = 64, .others = 128});
  EXPECT_EQ(parameters_of(buckets), (Parts{{4}, {3, 1}, {2, 0}}));
  EXPECT_EQ(buckets[1].kind, 1);
}

TEST(Layout, TheLastBucketsAreSmall) {
  const std::vector<ParameterSize> parameters(64, {.bytes = 64});
  std::vector<std::size_t> bytes;
  for (const auto& bucket : lay_out(parameters, backwards(64), {.first = 128, .others = 1024})) {
    bytes.push_back(bucket.bytes);
  }
  EXPECT_EQ(bytes, (std::vector<std::size_t>{128, 1024, 1024, 960, 512, 256, 128, 64}));
}

TEST(Layout, OverACableNoBucketIsLarge) {
  const std::vector<ParameterSize> parameters(64, {.bytes = 64});
  std::vector<std::size_t> bytes;
  for (const auto& bucket : lay_out(parameters, backwards(64), {.first = 256, .others = 4096, .part_of_rest = 8})) {
    bytes.push_back(bucket.bytes);
  }
  EXPECT_EQ(bytes, (std::vector<std::size_t>{256, 512, 448, 384, 320, 320, 256, 256, 256, 256, 256, 256, 256, 64}));
}

TEST(Layout, ALargeParameterIsNotCut) {
  const std::vector<ParameterSize> parameters{{5000}, {1}, {5000}};
  EXPECT_EQ(parameters_of(lay_out(parameters, backwards(3), {.first = 10, .others = 10})), (Parts{{2}, {1}, {0}}));
}

TEST(Layout, ParametersThatAreNotInTheOrderAreInNoBucket) {
  const std::vector<ParameterSize> parameters(4, {.bytes = 8});
  EXPECT_EQ(parameters_of(lay_out(parameters, std::vector<std::size_t>{2, 0}, {})), (Parts{{2, 0}}));
  EXPECT_TRUE(lay_out(parameters, {}, {}).empty());
}

TEST(Layout, ParametersWithoutElementsHaveTheirPlace) {
  const std::vector<ParameterSize> parameters{{0}, {4}};
  const auto buckets = lay_out(parameters, backwards(2), {});
  ASSERT_EQ(buckets.size(), 1U);
  EXPECT_EQ(buckets[0].bytes, 64U);
}

}  // namespace
}  // namespace tutti::gradient
