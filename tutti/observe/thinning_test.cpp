#include "tutti/observe/thinning.h"

#include <cstdint>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::observe {
namespace {

using testing::ElementsAre;

/// The numbers of the rows that are there when so many have come.
std::vector<int> kept(std::size_t slots, int rows) {
  Thinning thinning(slots);
  std::vector<int> table(slots);
  for (int row = 0; row < rows; ++row) {
    table.at(thinning.next()) = row;
  }
  std::vector<int> left;
  for (const auto slot : thinning.slots()) {
    left.push_back(table[slot]);
  }
  return left;
}

TEST(Thinning, KeepsAllWhileThereIsRoom) { EXPECT_THAT(kept(5, 5), ElementsAre(0, 1, 2, 3, 4)); }

TEST(Thinning, ThenEverySecondAndTheNewest) {
  EXPECT_THAT(kept(5, 6), ElementsAre(0, 2, 4, 5));
  EXPECT_THAT(kept(5, 7), ElementsAre(0, 2, 4, 6));
  EXPECT_THAT(kept(5, 9), ElementsAre(0, 2, 4, 6, 8));
  EXPECT_THAT(kept(5, 10), ElementsAre(0, 4, 8, 9));
  EXPECT_THAT(kept(5, 19), ElementsAre(0, 8, 16, 18));
}

TEST(Thinning, NeverMoreThanItsSlotsAndAlwaysTheEnds) {
  for (const std::size_t slots : {2, 3, 4, 7, 24}) {
    for (int rows = 1; rows < 300; ++rows) {
      const auto left = kept(slots, rows);
      ASSERT_LE(left.size(), slots);
      ASSERT_GE(left.size(), std::min<std::size_t>(static_cast<std::size_t>(rows), slots / 2));
      ASSERT_EQ(left.front(), 0);
      ASSERT_EQ(left.back(), rows - 1);
      const int stride = left.size() > 1 ? left[1] : 1;
      for (std::size_t i = 0; i + 1 < left.size(); ++i) {
        ASSERT_EQ(left[i], static_cast<int>(i) * stride) << slots << " slots, " << rows << " rows";
      }
    }
  }
}

}  // namespace
}  // namespace tutti::observe
