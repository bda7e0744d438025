#include "train/once.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::train {
namespace {

using testing::ElementsAre;

TEST(Once, SaysAnEventTheFirstTimeForEachRank) {
  Once once;
  EXPECT_EQ(once.say(Event::late_rank, Rank{3}, 7, "by 35 ms"), "rank 3 was late in step 7 by 35 ms");
  EXPECT_EQ(once.say(Event::late_rank, Rank{3}, 8, "by 40 ms"), std::nullopt);
  EXPECT_EQ(once.say(Event::late_rank, Rank{1}, 8), "rank 1 was late in step 8");
  EXPECT_EQ(once.say(Event::diverged_replica, Rank{3}, 9), "rank 3 had other weights than the others in step 9");
  EXPECT_EQ(once.say(Event::not_a_number, Rank{0}, 9), "rank 0 had a loss or gradient that is not a number in step 9");
}

TEST(Once, CountsTheOthers) {
  Once once;
  EXPECT_TRUE(once.counts().empty());
  for (std::int64_t step = 5; step < 1005; ++step) {
    EXPECT_EQ(once.say(Event::late_rank, Rank{2}, step).has_value(), step == 5);
  }
  EXPECT_TRUE(once.say(Event::not_a_number, Rank{2}, 900).has_value());
  EXPECT_THAT(once.counts(), ElementsAre("rank 2 was late 1000 times, in steps 5 to 1004"));
  EXPECT_EQ(once.all().size(), 2U);
}

TEST(Once, ListsInTheOrderThatThingsHappened) {
  Once once;
  once.say(Event::diverged_replica, Rank{0}, 3, "first");
  once.say(Event::late_rank, Rank{5}, 4);
  once.say(Event::diverged_replica, Rank{0}, 9, "again");
  const auto all = once.all();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].rank, Rank{0});
  EXPECT_EQ(all[0].detail, "first");
  EXPECT_EQ(all[0].last_step, 9);
  EXPECT_EQ(to_string(all[1].event), "late rank");
}

}  // namespace
}  // namespace tutti::train
