#include "tutti/plan/activities.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::plan {
namespace {

using testing::ElementsAre;

TEST(Activities, AloneTakeWhatTheyTake) {
  Activities activities(std::vector<Resource>{{.capacity = 10}});
  std::vector<std::uint32_t> over;
  activities.start(7, 3, 5, std::vector<std::uint32_t>{0});
  activities.start(8, 2, 0, {});
  EXPECT_TRUE(activities.advance(over));
  EXPECT_THAT(over, ElementsAre(8));
  EXPECT_DOUBLE_EQ(activities.now(), 2);
  EXPECT_TRUE(activities.advance(over));
  EXPECT_THAT(over, ElementsAre(7));
  EXPECT_DOUBLE_EQ(activities.now(), 3);
  EXPECT_FALSE(activities.advance(over));
  EXPECT_DOUBLE_EQ(activities.busy(0), 3);
}

TEST(Activities, ShareEvenlyAndGoOnFasterWhenOthersAreDone) {
  Activities activities(std::vector<Resource>{{.capacity = 10}});
  std::vector<std::uint32_t> over;
  const std::vector<std::uint32_t> link{0};
  activities.start(1, 1, 10, link);
  activities.start(2, 3, 10, link);
  EXPECT_TRUE(activities.advance(over));
  EXPECT_DOUBLE_EQ(activities.now(), 2);  // half each
  EXPECT_TRUE(activities.advance(over));
  EXPECT_DOUBLE_EQ(activities.now(), 4);
}

TEST(Activities, TheNarrowestResourceCounts) {
  Activities activities(std::vector<Resource>{{.capacity = 10}, {.capacity = 2}, {}});
  std::vector<std::uint32_t> over;
  activities.start(1, 1, 4, std::vector<std::uint32_t>{0, 1, 2});
  EXPECT_TRUE(activities.advance(over));
  EXPECT_DOUBLE_EQ(activities.now(), 2);
}

TEST(Activities, WhatSomeLeaveTheOthersGet) {
  Activities activities(std::vector<Resource>{{.capacity = 10, .shared = Resource::Shared::fully}});
  std::vector<std::uint32_t> over;
  const std::vector<std::uint32_t> memory{0};
  activities.start(1, 4, 2, memory);
  activities.start(2, 4, 16, memory);  // gets the 8 that are left
  EXPECT_TRUE(activities.advance(over));
  EXPECT_THAT(over, ElementsAre(1));
  EXPECT_DOUBLE_EQ(activities.now(), 4);
  EXPECT_TRUE(activities.advance(over));  // 2 seconds of it are left, at 10 of 16
  EXPECT_THAT(over, ElementsAre(2));
  EXPECT_DOUBLE_EQ(activities.now(), 4 + 2 * 1.6);
}

TEST(Activities, ManyAreSlowerWhileTheyAreMany) {
  Activities activities(std::vector<Resource>{{.crowding = {1, 1, 2}}});
  std::vector<std::uint32_t> over;
  const std::vector<std::uint32_t> crowd{0};
  activities.start(1, 1, 0, crowd);
  activities.start(2, 3, 0, crowd);
  EXPECT_TRUE(activities.advance(over));
  EXPECT_DOUBLE_EQ(activities.now(), 2);
  EXPECT_TRUE(activities.advance(over));
  EXPECT_DOUBLE_EQ(activities.now(), 4);
}

TEST(Activities, ACrowdIsRightToAFewPerCent) {
  // One after the other, a second's worth each: the link is never idle, so the end is known whatever is noticed when.
  Activities activities(std::vector<Resource>{{.capacity = 1}});
  std::vector<std::uint32_t> over;
  double work = 0;
  for (std::uint32_t id = 0; id < 200; ++id) {
    activities.start(id, 1 + 0.01 * id, 1, std::vector<std::uint32_t>{0});
    work += 1 + 0.01 * id;
  }
  while (activities.advance(over)) {
  }
  EXPECT_NEAR(activities.now(), work, 0.06 * work);
}

}  // namespace
}  // namespace tutti::plan
