// Output: whole lines, all of them, under the right name.
#include <algorithm>
#include <csignal>
#include <filesystem>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/multiprocess/launched_tool.h"
#include "tests/multiprocess/process_scan.h"

namespace tutti::tests {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class LauncherOutput : public LauncherTest {};

/// Checks lines as rank_program's `print` makes them, as they arrive.
class LineChecker {
 public:
  explicit LineChecker(int ranks) : next_(static_cast<std::size_t>(ranks), 0) {}

  void take(std::string_view bytes) {
    held_ += bytes;
    std::size_t start = 0;
    for (auto newline = held_.find('\n'); newline != std::string::npos; newline = held_.find('\n', start)) {
      check(std::string_view(held_).substr(start, newline - start));
      start = newline + 1;
    }
    held_.erase(0, start);
  }

  long bytes() const { return bytes_; }
  long torn() const { return torn_; }
  const std::string& first_torn() const { return first_torn_; }
  const std::string& rest() const { return held_; }

 private:
  void check(std::string_view line) {
    const auto rank = line.size() > 4 ? static_cast<std::size_t>(line[1] - '0') : next_.size();
    if (rank < next_.size()) {
      const long number = next_[rank]++;
      const std::string filler(static_cast<std::size_t>(number % 97), static_cast<char>('a' + number % 26));
      if (line == fmt::format("[{}] {}/{}/{}/end", rank, rank, number, filler)) {
        bytes_ += static_cast<long>(line.size()) - 3;
        return;
      }
    }
    if (torn_++ == 0) {
      first_torn_ = line;
    }
  }

  std::vector<long> next_;
  std::string held_;
  std::string first_torn_;
  long bytes_ = 0;
  long torn_ = 0;
};

TEST_F(LauncherOutput, AHundredMegabytesFromEachOfTwoRanks) {
  constexpr long kBytes = 100'000'000;
  LineChecker checker(2);
  const Outcome outcome =
      start({.arguments = {"run", "-n", "2", rank_program_path(), "print=" + std::to_string(kBytes)},
             .output_sink = [&](std::string_view bytes) { checker.take(bytes); }})
          ->wait();
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(checker.torn(), 0) << checker.first_torn();
  EXPECT_THAT(checker.rest(), IsEmpty());
  EXPECT_GE(checker.bytes(), 2 * kBytes);
}

TEST_F(LauncherOutput, StreamsStayApart) {
  const Outcome outcome = run({"-n", "1"}, {"say=to out", "err=to err"});
  EXPECT_EQ(outcome.out, "[0] to out\n");
  EXPECT_EQ(outcome.err, "[0] to err\n");
}

TEST_F(LauncherOutput, ALastLineWithoutItsEndGetsOne) {
  EXPECT_EQ(run({"-n", "1"}, {"say=one", "say-unfinished=two"}).out, "[0] one\n[0] two\n");
}

TEST_F(LauncherOutput, WithoutPrefix) { EXPECT_EQ(run({"-n", "1", "--no-prefix"}, {"say=plain"}).out, "plain\n"); }

TEST_F(LauncherOutput, QuietShowsOnlyFailures) {
  EXPECT_THAT(run({"-n", "3", "--quiet"}, {"say=a lot", "err=of noise"}).err, IsEmpty());
  const Outcome outcome = run({"-n", "2", "--quiet"}, {"say=a lot", "1:err=the cause", "1:exit=3", "sleep=60"});
  EXPECT_THAT(outcome.out, IsEmpty());
  EXPECT_THAT(outcome.err, HasSubstr("  | the cause\n"));
}

TEST_F(LauncherOutput, LongLinesComeInMarkedPieces) {
  const std::string full(64 * 1024, 'x');
  const Outcome outcome = run({"-n", "1"}, {"long-line=150000", "say=after"});
  EXPECT_EQ(outcome.out,
            "[0] " + full + "\n[0]+" + full + "\n[0]+" + std::string(150000 - 2 * full.size(), 'x') + "\n[0] after\n");
}

TEST_F(LauncherOutput, NoColourOutsideATerminal) {
  EXPECT_THAT(run({"-n", "2"}, {"say=plain"}).out, Not(HasSubstr("\x1b")));
}

TEST_F(LauncherOutput, LogFiles) {
  const std::string logs = folder() + "/deep/logs";
  const Outcome outcome = run({"-n", "3", "--log-dir", logs}, {"say=out line", "err=err line", "2:say-unfinished=end"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(file_text(logs + "/rank-0.out"), "out line\n");
  EXPECT_EQ(file_text(logs + "/rank-1.err"), "err line\n");
  EXPECT_EQ(file_text(logs + "/rank-2.out"), "out line\nend");
  EXPECT_THAT(outcome.out, HasSubstr("[1] out line\n"));
}

TEST_F(LauncherOutput, ALogThatFillsUpIsReportedOnce) {
  const std::string logs = folder() + "/logs";
  std::filesystem::create_directories(logs);
  std::filesystem::create_symlink("/dev/full", logs + "/rank-0.out");
  const Outcome outcome = run({"-n", "1", "--log-dir", logs}, {"say=one", "sleep=0.1", "say=two", "sleep=0.1"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.err, "tutti run: cannot write '" + logs + "/rank-0.out' any more: No space left on device\n");
  EXPECT_EQ(outcome.out, "[0] one\n[0] two\n");
}

TEST_F(LauncherOutput, ErrorsOfTheLastWriteAreReported) {
  const std::string logs = folder() + "/logs";
  std::filesystem::create_directories(logs);
  std::filesystem::create_symlink("/dev/full", logs + "/rank-1.err");
  const Outcome logged = run({"-n", "2", "--log-dir", logs}, {"1:err=only"});
  EXPECT_EQ(logged.code, 1);
  EXPECT_THAT(logged.err, HasSubstr("cannot write '" + logs + "/rank-1.err' any more: No space left on device\n"));

  const Outcome printed = start({.arguments = {"run", "-n", "1", rank_program_path(), "say=only"},
                                 .wrapper = after_shell(":", ">/dev/full")})
                              ->wait();
  EXPECT_EQ(printed.code, 1);
  EXPECT_EQ(printed.err, "tutti run: cannot write to standard output any more: No space left on device\n");

  const Outcome failed = start({.arguments = {"run", "-n", "1", rank_program_path(), "say=only", "exit=3"},
                                .wrapper = after_shell(":", ">/dev/full")})
                             ->wait();
  EXPECT_EQ(failed.code, 3);

  // The read that is under way takes one more line.
  const auto unread = start({"-n", "1"}, {"err=ready", "sleep=0.5", "say=taken", "sleep=0.5", "say=only"});
  ASSERT_TRUE(unread->saw("ready"));
  unread->stop_reading();
  const Outcome outcome = unread->wait();
  EXPECT_EQ(outcome.code, 128 + SIGPIPE);
  EXPECT_THAT(outcome.err, HasSubstr("nobody reads the standard output any more"));
}

TEST_F(LauncherOutput, AFileThatMayNotGrowIsAnError) {
  const std::string logs = folder() + "/logs";
  const Outcome outcome =
      start({.arguments = {"run", "-n", "1", "--log-dir", logs, rank_program_path(), "print=100000"},
             .wrapper = after_shell("ulimit -f 16")})
          ->wait();
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.err, "tutti run: cannot write '" + logs + "/rank-0.out' any more: File too large\n");
  EXPECT_GE(outcome.out.size(), 100'000U);
}

TEST_F(LauncherOutput, TheToolsOwnOutputThatCannotBeWritten) {
  for (const Words& arguments :
       {Words{"doctor", "--json"}, Words{"run", "--help"}, Words{"--version"}, Words{"plan", "show", "ring"},
        Words{"plan", "show", "ring", "-n", "60"}, Words{"plan", "check"}}) {
    for (const auto& [where, why] : {std::pair(">/dev/full", "No space left on device\n"),  //
                                     std::pair(">&-", "Bad file descriptor\n")}) {
      const Outcome outcome = start({.arguments = arguments, .wrapper = after_shell(":", where)})->wait();
      EXPECT_EQ(outcome.code, 2) << arguments[0] << where;
      EXPECT_THAT(outcome.err, EndsWith(why));
      EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    }
  }
  // An error that nobody can read still has its code.
  EXPECT_EQ(start({.arguments = {"run", "-n", "abc", "p"}, .wrapper = after_shell(":", "2>/dev/full")})->wait().code,
            2);
  EXPECT_EQ(start({.arguments = {}, .wrapper = after_shell(":", "2>/dev/full")})->wait().code, 2);
}

}  // namespace
}  // namespace tutti::tests
