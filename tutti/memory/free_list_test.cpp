#include "tutti/memory/free_list.h"

#include <map>
#include <random>

#include <gtest/gtest.h>

namespace tutti::memory {
namespace {

TEST(FreeList, TakesTheSmallestBlockThatFits) {
  FreeList list;
  list.give(0, 8192);
  list.give(16384, 4096);
  EXPECT_EQ(list.take(4096), 16384U);
  EXPECT_EQ(list.take(8192), 0U);
  EXPECT_EQ(list.take(1), std::nullopt);
}

TEST(FreeList, NeighboursBecomeOneAgain) {
  FreeList list;
  list.give(0, 3 * 4096);
  const auto first = list.take(4096);
  const auto second = list.take(4096);
  const auto third = list.take(4096);
  EXPECT_EQ(list.free_bytes(), 0U);
  list.give(*first, 4096);
  list.give(*third, 4096);
  EXPECT_EQ(list.take(3 * 4096), std::nullopt);
  list.give(*second, 4096);
  EXPECT_EQ(list.take(3 * 4096), 0U);
}

TEST(FreeList, LargeBlocksStartAtPagesAndSmallOnesAtLines) {
  FreeList list;
  list.give(0, 16 * 4096);
  EXPECT_EQ(*list.take(3) % FreeList::kAlignment, 0U);
  EXPECT_EQ(*list.take(5000) % FreeList::kPage, 0U);
  EXPECT_EQ(*list.take(1) % FreeList::kAlignment, 0U);
}

TEST(FreeList, ATailIsTakenOnlyWhenItIsLongEnough) {
  FreeList list;
  list.give(0, 10 * 4096);
  const auto block = *list.take(4096);
  EXPECT_EQ(block, 0U);
  EXPECT_EQ(list.tail_bytes(10 * 4096), 9U * 4096);
  EXPECT_EQ(list.take_tail(10 * 4096, 10 * 4096), std::nullopt);
  EXPECT_EQ(list.take_tail(10 * 4096, 9 * 4096), 4096U);
  EXPECT_EQ(list.tail_bytes(4096), 0U);
}

TEST(FreeList, RandomUseNeverHandsOutTheSameByteTwice) {
  constexpr std::size_t kBytes = 1 << 20;
  FreeList list;
  list.give(0, kBytes);
  std::mt19937 random(7);
  std::map<std::size_t, std::size_t> taken;
  for (int i = 0; i < 20'000; ++i) {
    if (random() % 2 == 0 || taken.empty()) {
      const auto bytes = random() % 7 == 0 ? random() % 50'000 : random() % 500;
      if (const auto offset = list.take(bytes)) {
        const auto next = taken.lower_bound(*offset);
        EXPECT_TRUE(next == taken.end() || *offset + FreeList::rounded(bytes) <= next->first);
        EXPECT_TRUE(next == taken.begin() ||
                    std::prev(next)->first + FreeList::rounded(std::prev(next)->second) <= *offset);
        EXPECT_LE(*offset + FreeList::rounded(bytes), kBytes);
        taken.emplace(*offset, bytes);
      }
    } else {
      const auto victim = std::next(taken.begin(), static_cast<std::ptrdiff_t>(random() % taken.size()));
      list.give(victim->first, victim->second);
      taken.erase(victim);
    }
  }
  for (const auto& [offset, bytes] : taken) {
    list.give(offset, bytes);
  }
  EXPECT_EQ(list.free_bytes(), kBytes);
  EXPECT_EQ(list.take(kBytes), 0U);
}

}  // namespace
}  // namespace tutti::memory
