#include "train/split.h"

#include <gtest/gtest.h>

namespace tutti::train {
namespace {

std::int64_t bytes_of(const std::vector<Piece>& pieces) {
  std::int64_t bytes = 0;
  for (const auto& piece : pieces) {
    bytes += piece.end - piece.begin;
  }
  return bytes;
}

TEST(Split, SmallCorporaAreEvaluatedAtTheirEnd) {
  const auto parts = split(1003, 0.1);
  EXPECT_EQ(parts.training, (std::vector<Piece>{{0, 903}}));
  EXPECT_EQ(parts.evaluation, (std::vector<Piece>{{903, 1003}}));
}

TEST(Split, LargeOnesInSixteenPlaces) {
  const auto parts = split(10'000'019, 0.05);
  ASSERT_EQ(parts.training.size(), 16U);
  ASSERT_EQ(parts.evaluation.size(), 16U);
  EXPECT_EQ(bytes_of(parts.evaluation), 500'000);
}

TEST(Split, EveryByteIsInOnePart) {
  for (const std::int64_t bytes : {1LL, 2LL, 999LL, 163'841LL, 1'234'567LL, 5'000'000'000'011LL}) {
    for (const double share : {0.0, 0.001, 0.05, 0.33, 0.5, 0.999}) {
      const auto parts = split(bytes, share);
      std::int64_t at = 0;
      for (std::size_t i = 0; i < parts.training.size(); ++i) {
        EXPECT_EQ(parts.training[i].begin, at);
        EXPECT_LE(parts.training[i].begin, parts.training[i].end);
        at = parts.training[i].end;
        if (i < parts.evaluation.size()) {
          EXPECT_EQ(parts.evaluation[i].begin, at);
          EXPECT_LT(parts.evaluation[i].begin, parts.evaluation[i].end);
          at = parts.evaluation[i].end;
        }
      }
      EXPECT_EQ(at, bytes);
      EXPECT_NEAR(static_cast<double>(bytes_of(parts.evaluation)), static_cast<double>(bytes) * share, 1);
    }
  }
}

TEST(Split, WithoutAShareAllIsForTraining) {
  EXPECT_EQ(split(5, 0).training, (std::vector<Piece>{{0, 5}}));
  EXPECT_TRUE(split(5, 0).evaluation.empty());
  EXPECT_TRUE(split(5, 0.1).evaluation.empty()) << "less than a byte";
}

}  // namespace
}  // namespace tutti::train
