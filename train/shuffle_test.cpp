#include "train/shuffle.h"

#include <array>
#include <cstdlib>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace tutti::train {
namespace {

std::vector<std::int64_t> order(std::int64_t size, std::uint64_t seed, std::int64_t epoch) {
  const Shuffle shuffle(size, seed, epoch);
  std::vector<std::int64_t> numbers;
  for (std::int64_t i = 0; i < size; ++i) {
    numbers.push_back(shuffle[i]);
  }
  return numbers;
}

void expect_permutation(std::int64_t size, std::uint64_t seed, std::int64_t epoch) {
  std::vector<bool> seen(static_cast<std::size_t>(size));
  for (const auto number : order(size, seed, epoch)) {
    ASSERT_TRUE(number >= 0 && number < size) << size;
    ASSERT_FALSE(seen[static_cast<std::size_t>(number)]) << number << " comes twice of " << size;
    seen[static_cast<std::size_t>(number)] = true;
  }
}

TEST(Shuffle, HasEveryNumberOnceWhateverTheSize) {
  for (std::int64_t size = 1; size <= 1100; ++size) {
    expect_permutation(size, 7, size % 5);
  }
  for (const std::int64_t size : {4095, 4096, 4097, 65'537, 262'145}) {
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
      expect_permutation(size, seed, static_cast<std::int64_t>(seed) + 11);
    }
  }
}

TEST(Shuffle, DependsOnSeedAndEpoch) {
  EXPECT_EQ(order(1003, 1, 2), order(1003, 1, 2));
  std::set<std::vector<std::int64_t>> orders;
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    for (std::int64_t epoch = 0; epoch < 5; ++epoch) {
      orders.insert(order(1003, seed, epoch));
    }
  }
  EXPECT_EQ(orders.size(), 25U);
}

TEST(Shuffle, EachNumberComesFirstEquallyOften) {
  constexpr std::int64_t kDraws = 7000;
  std::array<int, 7> first{};
  for (std::int64_t epoch = 0; epoch < kDraws; ++epoch) {
    ++first[static_cast<std::size_t>(Shuffle(7, 1234, epoch)[0])];
  }
  for (const auto times : first) {
    EXPECT_NEAR(times, 1000, 150);  // five standard deviations
  }
}

TEST(Shuffle, NeighboursAreTornApart) {
  const auto numbers = order(10'007, 1, 0);
  double distance = 0;
  std::size_t in_place = 0;
  for (std::size_t i = 1; i < numbers.size(); ++i) {
    distance += static_cast<double>(std::abs(numbers[i] - numbers[i - 1]));
    in_place += numbers[i] == static_cast<std::int64_t>(i) ? 1 : 0;
  }
  EXPECT_NEAR(distance / 10'006, 10'007 / 3.0, 100) << "two numbers drawn by lot are a third apart";
  EXPECT_LT(in_place, 10U);
}

TEST(Shuffle, LargeSizesNeedNoMemory) {
  const Shuffle shuffle(std::int64_t{1} << 61, 3, 1);
  const auto number = shuffle[(std::int64_t{1} << 61) - 1];
  EXPECT_GE(number, 0);
  EXPECT_LT(number, shuffle.size());
}

TEST(Shuffle, StaysWhatItIs) {
  // Runs that go on from a saved position rely on it, on any machine.
  EXPECT_EQ(order(11, 42, 3), (std::vector<std::int64_t>{1, 0, 2, 6, 7, 8, 9, 3, 4, 5, 10}));
}

}  // namespace
}  // namespace tutti::train
