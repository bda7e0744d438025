// Every kind of death, and who is blamed for it.
#include <csignal>

#include <gmock/gmock.h>

#include "tests/multiprocess/launched_tool.h"
#include "tests/multiprocess/process_scan.h"

namespace tutti::tests {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

class LauncherDeath : public LauncherTest {};

TEST_F(LauncherDeath, ExitCode) {
  const Outcome outcome = run({"-n", "3"}, {"1:err=what went wrong", "1:exit=3", "sleep=60"});
  EXPECT_EQ(outcome.code, 3);
  EXPECT_THAT(
      outcome.err,
      ContainsRegex("tutti run: rank 1 \\(pid [0-9]+\\) exited with code 3 after [0-9.]+ s\n  \\| what went wrong\n$"));
}

TEST_F(LauncherDeath, Signals) {
  const std::pair<int, const char*> signals[] = {{SIGKILL, "SIGKILL (signal 9)"},
                                                 {SIGSEGV, "SIGSEGV (signal 11)"},
                                                 {SIGABRT, "SIGABRT (signal 6)"},
                                                 {SIGTERM, "SIGTERM (signal 15)"}};
  for (const auto& [signal, name] : signals) {
    const Outcome outcome = run({"-n", "3"}, {"1:raise=" + std::to_string(signal), "sleep=60"});
    EXPECT_EQ(outcome.code, 128 + signal);
    EXPECT_THAT(outcome.err, HasSubstr(std::string("was killed by ") + name));
    EXPECT_THAT(outcome.err, HasSubstr("tutti run: rank 1 "));
  }
}

TEST_F(LauncherDeath, LastLinesAreOfTheOutputWhenThereAreNoErrors) {
  const Outcome outcome = run({"-n", "2"}, {"1:say=one", "1:say=two", "1:say=three", "1:say=four", "1:say=five",
                                            "1:say=six", "1:say-unfinished=seven", "1:exit=9", "sleep=60"});
  EXPECT_EQ(outcome.code, 9);
  EXPECT_THAT(outcome.err, HasSubstr("  | three\n  | four\n  | five\n  | six\n  | seven\n"));
  EXPECT_THAT(outcome.err, Not(HasSubstr("  | two")));
}

TEST_F(LauncherDeath, LeavingEarlyWithSuccessIsNoFailure) {
  const Outcome outcome = run({"-n", "3"}, {"1:exit=0", "sleep=0.2", "say=done"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("[0] done\n"));
  EXPECT_THAT(outcome.out, Not(HasSubstr("[1]")));
}

TEST_F(LauncherDeath, WhoLeftEarlyIsNamedWhenOthersFailForIt) {
  const Outcome outcome = run({"-n", "3"}, {"1:exit=0", "sleep=0.3", "2:exit=4", "sleep=60"});
  EXPECT_EQ(outcome.code, 4);
  EXPECT_THAT(outcome.err, HasSubstr("before it, rank 1 had left with code 0"));
}

TEST_F(LauncherDeath, BeforeItJoined) {
  const Outcome outcome = run({"-n", "3"}, {"1:raise=9", "join", "barrier=never", "sleep=60"});
  EXPECT_EQ(outcome.code, 137);
  EXPECT_THAT(outcome.err, ContainsRegex("tutti run: rank 1 .* was killed by SIGKILL"));
}

TEST_F(LauncherDeath, WhoLeavesWithoutJoiningIsNotWaitedFor) {
  const Outcome outcome = run({"-n", "3", "--timeout", "50"}, {"1:exit=0", "join", "barrier=never", "sleep=60"});
  EXPECT_NE(outcome.code, 0);
  EXPECT_NE(outcome.code, 124) << "it was the time limit that ended it";
  EXPECT_THAT(outcome.err, HasSubstr("rank 1"));
  EXPECT_THAT(outcome.err, HasSubstr("never joined the job"));
}

TEST_F(LauncherDeath, InABarrierOthersAreNotBlamed) {
  // Whoever hears of the lost peer exits with 7 at once: a consequence, even if it is seen first.
  const Outcome outcome =
      run({"-n", "5"}, {"join", "barrier=first", "3:raise=11", "ignore=15", "barrier=second", "sleep=60"});
  EXPECT_EQ(outcome.code, 139);
  EXPECT_THAT(outcome.err, ContainsRegex("tutti run: rank 3 .* was killed by SIGSEGV"));
}

TEST_F(LauncherDeath, ASlowDeathIsWaitedFor) {
  // Others have heard of it and ended, while the kernel is still busy with the memory of the one that was killed.
  const Outcome outcome = run({"-n", "3"}, {"join", "barrier=all", "1:die-slowly=1.5", "sleep=0.3", "exit=7"});
  EXPECT_EQ(outcome.code, 137);
  EXPECT_THAT(outcome.err, ContainsRegex("tutti run: rank 1 .* was killed by SIGKILL"));
}

TEST_F(LauncherDeath, WhoLeftTheOthersFirstIsBlamed) {
  // It fails and cleans up for a while; others miss it, and end before it does.
  const Outcome outcome =
      run({"-n", "3"}, {"join", "barrier=all", "1:leave", "1:sleep=1.5", "1:exit=5", "sleep=0.3", "exit=7"});
  EXPECT_EQ(outcome.code, 5);
  EXPECT_THAT(outcome.err, ContainsRegex("tutti run: rank 1 .* exited with code 5"));
}

TEST_F(LauncherDeath, WhoLeftFirstAndGoesOnIsNotWaitedForLong) {
  const Outcome outcome = run({"-n", "3", "--grace", "1"},
                              {"join", "barrier=all", "1:leave", "1:sleep=60", "sleep=0.3", "2:exit=7", "sleep=60"});
  EXPECT_EQ(outcome.code, 7);
  EXPECT_THAT(outcome.err, ContainsRegex("tutti run: rank 2 .* exited with code 7"));
}

TEST_F(LauncherDeath, OthersAreToldWhoFailed) {
  // Rank 0 does not heed SIGTERM, so its call in the store is what ends it.
  const Outcome outcome = run({"-n", "2", "--grace", "20"},
                              {"ignore=15", "join", "barrier=first", "1:raise=9", "barrier=second", "sleep=60"});
  EXPECT_EQ(outcome.code, 137);
  EXPECT_THAT(outcome.err, ContainsRegex("\\[0\\] .*rank 1"));
}

TEST_F(LauncherDeath, OthersAreGivenGraceAndThenEnded) {
  const auto began = std::chrono::steady_clock::now();
  const Outcome outcome = run({"-n", "3", "--grace", "0.5"}, {"1:exit=3", "ignore=15", "sleep=60"});
  EXPECT_EQ(outcome.code, 3);
  EXPECT_GT(std::chrono::steady_clock::now() - began, std::chrono::milliseconds(500));
  EXPECT_THAT(outcome.err, HasSubstr("rank 1 "));
}

TEST_F(LauncherDeath, WhatRanksStartedGoesWithThem) {
  for (const char* verb : {"child", "daemon"}) {
    const Outcome outcome = run({"-n", "3", "--grace", "0.3"}, {verb, "1:exit=3", "sleep=60"});
    EXPECT_EQ(outcome.code, 3) << verb;
    expect_all_gone();
  }
}

TEST_F(LauncherDeath, WhatRanksStartedGoesWithThemAlsoAfterSuccess) {
  for (const char* verb : {"child", "daemon"}) {
    const Outcome outcome = run({"-n", "3"}, {verb, "say=started"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    expect_all_gone();
  }
}

TEST_F(LauncherDeath, LauncherKilled) {
  for (const char* verb : {"say=alone", "child", "daemon"}) {
    const auto tool = start({"-n", "3"}, {"ignore=15", "ignore=1", verb, "join", "barrier=x", "say=ready", "sleep=60"});
    ASSERT_TRUE(tool->saw("ready", 3));
    tool->signal(SIGKILL);
    expect_all_gone();
    EXPECT_EQ(tool->wait().signal, SIGKILL);
  }
}

TEST_F(LauncherDeath, SupervisorKilled) {
  for (const char* verb : {"say=alone", "child", "daemon"}) {
    const auto tool = start({"-n", "3"}, {"ignore=15", "ignore=1", verb, "join", "barrier=x", "say=ready", "sleep=60"});
    ASSERT_TRUE(tool->saw("ready", 3));
    ::kill(supervisor_of(*tool), SIGKILL);
    expect_all_gone();
    const Outcome outcome = tool->wait();
    EXPECT_EQ(outcome.code, 137);
    EXPECT_THAT(outcome.err, HasSubstr("tutti run: the supervisor was killed by SIGKILL (signal 9)"));
  }
}

}  // namespace
}  // namespace tutti::tests
