#include "tutti/engine/mpi/members.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::engine::mpi {
namespace {

using ::testing::ElementsAre;

TEST(Members, AreArrangedByHost) {
  const auto members = arrange({"b", "a", "b", "b"}, {7, 5, 3, 1}, {Rank{0}, Rank{2}, Rank{4}, Rank{6}});
  ASSERT_EQ(members.hosts(), 2);
  EXPECT_THAT(members.by_host[0], ElementsAre(Rank{0}, Rank{2}, Rank{3}));
  EXPECT_THAT(members.by_host[1], ElementsAre(Rank{1}));
  EXPECT_EQ(members.fewest(), 1U);
  EXPECT_EQ(members[Rank{3}].host, 0);
  EXPECT_EQ(members[Rank{3}].local, Rank{2});
  EXPECT_EQ(members[Rank{3}].address, 1);
  EXPECT_EQ(members[Rank{3}].in_world, Rank{6});
}

}  // namespace
}  // namespace tutti::engine::mpi
