#include "tutti/engine/mpi/members.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::engine::mpi {
namespace {

using ::testing::ElementsAre;

TEST(Members, AreArrangedByHost) {
  const auto members = arrange({{.host = "b", .address = 7, .in_world = Rank{0}},
                                {.host = "a", .address = 5, .in_world = Rank{2}},
                                {.host = "b", .address = 3, .in_world = Rank{4}},
                                {.host = "b", .address = 1, .in_world = Rank{6}}});
  ASSERT_EQ(members.hosts(), 2);
  EXPECT_THAT(members.by_host[0], ElementsAre(Rank{0}, Rank{2}, Rank{3}));
  EXPECT_THAT(members.by_host[1], ElementsAre(Rank{1}));
  EXPECT_EQ(members.fewest(), 1U);
  EXPECT_EQ(members[Rank{3}].host, 0);
  EXPECT_EQ(members[Rank{3}].local, Rank{2});
  EXPECT_EQ(members[Rank{3}].address, 1);
  EXPECT_EQ(members[Rank{3}].in_world, Rank{6});
}

TEST(Members, HostsAtOneSwitchAreNextToEachOther) {
  const auto members = arrange({{.host = "a", .at_switch = 1},
                                {.host = "b", .at_switch = 0},
                                {.host = "c", .at_switch = 1},
                                {.host = "d", .at_switch = 0},
                                {.host = "a", .at_switch = 1}});
  ASSERT_EQ(members.hosts(), 4);
  EXPECT_THAT(members.by_host[0], ElementsAre(Rank{1}));
  EXPECT_THAT(members.by_host[1], ElementsAre(Rank{3}));
  EXPECT_THAT(members.by_host[2], ElementsAre(Rank{0}, Rank{4}));
  EXPECT_THAT(members.by_host[3], ElementsAre(Rank{2}));
  EXPECT_EQ(members[Rank{4}].host, 2);
  EXPECT_THAT(members.at_switch, ElementsAre(2, 2));
}

TEST(Members, OneSwitchIsNoneToSpeakOf) {
  EXPECT_TRUE(arrange({{.host = "a", .at_switch = 3}, {.host = "b", .at_switch = 3}}).at_switch.empty());
}

}  // namespace
}  // namespace tutti::engine::mpi
