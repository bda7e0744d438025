// Stopping a job: by the user, by time, by a reader that went away.
#include <csignal>
#include <future>
#include <sstream>

#include <gmock/gmock.h>

#include "tests/multiprocess/launched_tool.h"

namespace tutti::tests {
namespace {

using std::chrono::seconds;
using std::chrono::steady_clock;
using ::testing::HasSubstr;
using ::testing::Not;

class LauncherStop : public LauncherTest {};

TEST_F(LauncherStop, CtrlCOnceIsACleanStop) {
  // Ranks that break off from the store because they were told to end are nothing to warn of.
  const auto tool = start({"-n", "3"}, {"join", "barrier=all", "say=ready", "sleep=60"});
  ASSERT_TRUE(tool->saw("ready", 3));
  tool->signal(SIGINT);
  const Outcome outcome = tool->wait();
  EXPECT_EQ(outcome.code, 130);
  EXPECT_EQ(outcome.err, "tutti run: stopping; press Ctrl-C again to end at once\n");
}

TEST_F(LauncherStop, CtrlCTwiceIsAtOnce) {
  const auto tool = start({"-n", "3", "--grace", "40"}, {"ignore=2", "ignore=15", "say=ready", "sleep=60"});
  ASSERT_TRUE(tool->saw("ready", 3));
  tool->signal(SIGINT);
  ASSERT_TRUE(tool->saw("press Ctrl-C again"));
  EXPECT_GE(job_processes().size(), 5U);
  const auto second = steady_clock::now();
  tool->signal(SIGINT);
  EXPECT_EQ(tool->wait().code, 130);
  EXPECT_LT(steady_clock::now() - second, seconds(20));  // the grace is 40
}

TEST_F(LauncherStop, WhoIgnoresCtrlCIsTerminated) {
  const auto tool = start({"-n", "2", "--grace", "0.4"}, {"ignore=2", "say=ready", "sleep=60"});
  ASSERT_TRUE(tool->saw("ready", 2));
  tool->signal(SIGINT);
  EXPECT_EQ(tool->wait().code, 130);
}

TEST_F(LauncherStop, TerminateAndHangUp) {
  for (const int signal : {SIGTERM, SIGHUP}) {
    const auto tool = start({"-n", "3"}, {"say=ready", "sleep=60"});
    ASSERT_TRUE(tool->saw("ready", 3));
    tool->signal(signal);
    const Outcome outcome = tool->wait();
    EXPECT_EQ(outcome.code, 128 + signal);
    EXPECT_THAT(outcome.err, Not(HasSubstr("rank")));
  }
}

TEST_F(LauncherStop, RanksThatIgnoreItAreKilledAfterTheirGrace) {
  const auto tool = start({"-n", "3", "--grace", "0.5"}, {"ignore=15", "say=ready", "sleep=60"});
  ASSERT_TRUE(tool->saw("ready", 3));
  const auto asked = steady_clock::now();
  tool->signal(SIGTERM);
  EXPECT_EQ(tool->wait().code, 143);
  EXPECT_GE(steady_clock::now() - asked, std::chrono::milliseconds(500));
}

TEST_F(LauncherStop, AStoppedRankIsEndedToo) {
  const auto tool = start({"-n", "2"}, {"say=ready", "1:raise=19", "sleep=60"});
  ASSERT_TRUE(tool->saw("ready", 2));
  tool->signal(SIGTERM);
  EXPECT_EQ(tool->wait().code, 143);
}

TEST_F(LauncherStop, TimeLimit) {
  const Outcome outcome = run({"-n", "2", "--timeout", "0.5"}, {"sleep=60"});
  EXPECT_EQ(outcome.code, 124);
  EXPECT_EQ(outcome.err, "tutti run: the job took longer than the 0.5 s of --timeout; stopping\n");
  EXPECT_EQ(run({"-n", "2", "--timeout", "30"}, {"say=quick"}).code, 0);
}

TEST_F(LauncherStop, NobodyReadsTheOutput) {
  const auto tool = start({"-n", "2"}, {"say=ready", "print=1000000000"});
  ASSERT_TRUE(tool->saw("ready", 2));
  tool->stop_reading();
  const Outcome outcome = tool->wait();
  EXPECT_EQ(outcome.code, 128 + SIGPIPE);
  EXPECT_EQ(outcome.err, "tutti run: nobody reads the standard output any more; stopping\n");
}

TEST_F(LauncherStop, ABlockedReaderHoldsUpNoSignal) {
  std::promise<void> open;
  const auto gate = open.get_future().share();
  const auto tool = start({.arguments = {"run", "-n", "2", "--grace", "0.3", rank_program_path(), "err=ready",
                                         "ignore=15", "join", "barrier=go", "print=1000000000"},
                           .output_sink = [gate](std::string_view) { gate.wait(); }});
  EXPECT_TRUE(tool->saw("ready", 2));
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // until every buffer on the way is full
  tool->signal(SIGTERM);
  // Its ranks end, although what they printed is still on its way.
  bool ended = false;
  for (int i = 0; i < 2000 && !ended; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    ended = job_processes().size() <= 2;
  }
  EXPECT_TRUE(ended);
  tool->signal(SIGTERM);
  // The second one gives the output up, so its end does not wait for the reader.
  for (int i = 0; i < 2000 && !job_processes().empty(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_TRUE(job_processes().empty());
  open.set_value();
  EXPECT_EQ(tool->wait().code, 143);
}

TEST_F(LauncherStop, AReaderThatNeverReadsHoldsUpNoEnd) {
  struct Case {
    Words options;
    int signal;
    int code;
    const char* sentence;
  };
  const Case cases[] = {
      {{"--timeout", "0.7"}, 0, 124, "the job took longer than the 0.7 s of --timeout; stopping\n"},
      {{}, SIGTERM, 143, "stopping on SIGTERM"},
      {{"--env", "FAIL=1"}, 0, 5, "exited with code 5"},
  };
  for (const Case& how : cases) {
    std::promise<void> open;
    const auto gate = open.get_future().share();
    Words arguments{"run", "-n", "2", "--grace", "0.3"};
    arguments.insert(arguments.end(), how.options.begin(), how.options.end());
    arguments.insert(arguments.end(), {rank_program_path(), "err=ready", "1:sleep=0.5"});
    if (how.code == 5) {
      arguments.emplace_back("1:exit=5");
    }
    arguments.emplace_back("print=1000000000");
    const auto tool = start({.arguments = arguments, .output_sink = [gate](std::string_view) { gate.wait(); }});
    EXPECT_TRUE(tool->saw("ready", 2));
    std::this_thread::sleep_for(std::chrono::milliseconds(300));  // until every buffer on the way is full
    if (how.signal != 0) {
      tool->signal(how.signal);
    }
    for (int i = 0; i < 2000 && !job_processes().empty(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    EXPECT_TRUE(job_processes().empty()) << how.sentence;
    open.set_value();
    const Outcome outcome = tool->wait();
    EXPECT_EQ(outcome.code, how.code);
    EXPECT_THAT(outcome.err, HasSubstr(how.sentence));
  }
}

TEST_F(LauncherStop, IgnoredSignalsStayIgnored) {
  const auto tool = start({.arguments = {"run", "-n", "3", rank_program_path(), "say=ready", "sleep=1", "say=done"},
                           .wrapper = after_shell("trap '' HUP INT TERM TSTP")});
  ASSERT_TRUE(tool->saw("ready", 3));
  const pid_t supervisor = supervisor_of(*tool);
  ASSERT_GT(supervisor, 0);
  for (const int signal : {SIGHUP, SIGINT, SIGTERM, SIGTSTP}) {
    tool->signal(signal);
    ::kill(supervisor, signal);
  }
  const Outcome outcome = tool->wait();
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.err, "");
  EXPECT_THAT(outcome.out, HasSubstr("[2] done\n"));
}

TEST_F(LauncherStop, RanksIgnoreWhatTheUserIgnores) {
  for (const char* ignored : {"HUP INT TERM PIPE XFSZ", "HUP"}) {
    const std::string trap = std::string("trap '' ") + ignored + "; grep SigIgn /proc/self/status";
    const Outcome outcome =
        start({.arguments = {"run", "-n", "1", "--no-prefix", "grep", "SigIgn", "/proc/self/status"},
               .wrapper = after_shell(trap)})
            ->wait();
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    // Two lines, of the shell and of the rank. Only these signals count: the C library has some of its own.
    std::istringstream lines(outcome.out);
    std::string name;
    std::uint64_t shell = 0;
    std::uint64_t rank = 0;
    lines >> name >> std::hex >> shell >> name >> rank;
    std::uint64_t ours = 0;
    for (const int signal : {SIGHUP, SIGINT, SIGTERM, SIGPIPE, SIGXFSZ}) {
      ours |= std::uint64_t{1} << (signal - 1);
    }
    EXPECT_NE(shell & ours, 0U) << outcome.out;
    EXPECT_EQ(rank & ours, shell & ours) << outcome.out;
  }
}

}  // namespace
}  // namespace tutti::tests
