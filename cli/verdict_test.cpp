#include "cli/verdict.h"

#include <csignal>

#include <gmock/gmock.h>

namespace tutti::cli {
namespace {

using std::chrono::duration;

// Wait statuses as Linux encodes them.
constexpr int exited(int code) { return code << 8; }
constexpr int killed(int signal) { return signal; }

RankEnd end(int rank, int status, double after = 0) {
  return {.rank = Rank{rank}, .pid = 4711, .status = status, .after = duration<double>(after)};
}

TEST(Describe, SaysWhatHappened) {
  EXPECT_EQ(describe(end(1, killed(SIGSEGV), 3.21)), "rank 1 (pid 4711) was killed by SIGSEGV (signal 11) after 3.2 s");
  EXPECT_EQ(describe(end(2, exited(3), 0.04)), "rank 2 (pid 4711) exited with code 3 after 0.0 s");
  RankEnd remote = end(5, exited(1), 7);
  remote.host = "b";
  EXPECT_EQ(describe(remote), "rank 5 (pid 4711 on b) exited with code 1 after 7.0 s");
}

TEST(Describe, KnowsRealTimeSignalsByNumber) {
  EXPECT_EQ(signal_text(SIGKILL), "SIGKILL (signal 9)");
  EXPECT_EQ(signal_text(40), "signal 40");
}

TEST(FirstFailure, NobodyWhenAllAreWell) {
  EXPECT_EQ(first_failure({}), std::nullopt);
  EXPECT_EQ(first_failure({end(0, 0), end(1, 0)}), std::nullopt);
}

TEST(FirstFailure, TheEarliestOfThoseThatExited) {
  EXPECT_EQ(first_failure({end(2, 0), end(1, exited(3)), end(0, exited(1))}), 1U);
}

TEST(FirstFailure, TheOneThatTheOthersLostFirst) {
  RankEnd slow = end(2, exited(5), 1.7);
  slow.lost_after = duration<double>(0.1);
  EXPECT_EQ(first_failure({end(0, exited(1), 0.2), end(1, exited(1), 0.3), slow}), 2U);
  slow.lost_after = duration<double>(0.25);
  EXPECT_EQ(first_failure({end(0, exited(1), 0.2), end(1, exited(1), 0.3), slow}), 0U);
}

TEST(FirstFailure, ASignalIsTheCauseEvenWhenSeenLater) {
  EXPECT_EQ(first_failure({end(0, exited(1)), end(2, exited(1)), end(1, killed(SIGKILL))}), 2U);
  EXPECT_EQ(first_failure({end(0, exited(1)), end(1, killed(SIGBUS)), end(2, killed(SIGSEGV))}), 1U);
}

TEST(FirstFailure, AnAbortMayBeAConsequence) {
  EXPECT_EQ(first_failure({end(1, exited(3)), end(0, killed(SIGABRT))}), 0U);
  EXPECT_EQ(first_failure({end(0, killed(SIGABRT)), end(1, exited(3))}), 0U);
  EXPECT_EQ(first_failure({end(0, killed(SIGABRT)), end(1, killed(SIGFPE))}), 1U);
}

TEST(ExitCode, IsWhatAShellWouldGive) {
  EXPECT_EQ(exit_code(end(0, exited(3))), 3);
  EXPECT_EQ(exit_code(end(0, killed(SIGKILL))), 137);
}

TEST(EarlyLeavers, NamesThoseThatWereGoneBefore) {
  const RankEnd blamed = end(1, exited(1), 5);
  EXPECT_EQ(early_leavers({end(0, 0, 2), blamed}, blamed), "before it, rank 0 had left with code 0");
  EXPECT_EQ(early_leavers({blamed, end(0, 0, 6)}, blamed), "");
  EXPECT_EQ(early_leavers({end(7, 0, 1), end(3, 0, 2), end(0, 0, 2), end(5, 0, 3), end(4, 0, 3), blamed}, blamed),
            "before it, rank 0, 3, 4 and 2 more had left with code 0");
}

}  // namespace
}  // namespace tutti::cli
