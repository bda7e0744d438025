#include "cli/rank_environment.h"

#include <gmock/gmock.h>

namespace tutti::cli {
namespace {

using ::testing::Contains;
using ::testing::Not;
using ::testing::StartsWith;

Share third_to_fifth() {
  return {.command = {"x"}, .variables = {{"A", "new"}}, .first = Rank{3}, .count = 3, .world_size = 7};
}

TEST(RankEnvironment, TellsTheRankItsPlace) {
  const auto entries = rank_environment({"HOME=/x"}, third_to_fifth(), 2, 8);
  for (const char* entry : {"RANK=5", "WORLD_SIZE=7", "LOCAL_RANK=2", "LOCAL_WORLD_SIZE=3", "HOME=/x", "A=new",
                            "TUTTI_SECRET_FD=42", "OMP_NUM_THREADS=2"}) {
    EXPECT_THAT(entries, Contains(entry)) << entry;
  }
}

TEST(RankEnvironment, ReplacesWhatWasThere) {
  const auto entries =
      rank_environment({"RANK=99", "A=old", "AB=kept", "TUTTI_SECRET_FILE=/outer"}, third_to_fifth(), 0, 1);
  EXPECT_THAT(entries, Contains("RANK=3"));
  EXPECT_THAT(entries, Not(Contains("RANK=99")));
  EXPECT_THAT(entries, Not(Contains("A=old")));
  EXPECT_THAT(entries, Contains("AB=kept"));
  EXPECT_THAT(entries, Not(Contains(StartsWith("TUTTI_SECRET_FILE"))));
}

TEST(RankEnvironment, LeavesThreadsToWhoSetThem) {
  EXPECT_THAT(rank_environment({"OMP_NUM_THREADS=5"}, third_to_fifth(), 0, 64), Contains("OMP_NUM_THREADS=5"));
  EXPECT_THAT(rank_environment({}, third_to_fifth(), 0, 2), Contains("OMP_NUM_THREADS=1"));
}

}  // namespace
}  // namespace tutti::cli
