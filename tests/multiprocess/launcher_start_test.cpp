// Starting: what a rank finds, and what a user is told who asks for the impossible.
#include <sched.h>
#include <sys/stat.h>

#include <fstream>
#include <set>

#include <gmock/gmock.h>

#include "tests/multiprocess/launched_tool.h"
#include "tests/multiprocess/process_scan.h"

namespace tutti::tests {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

class LauncherStart : public LauncherTest {};

int lines_in(const std::string& text) { return static_cast<int>(std::count(text.begin(), text.end(), '\n')); }

TEST_F(LauncherStart, RanksMeetInTheStore) {
  const Outcome outcome = run({"-n", "5"}, {"join", "barrier=all", "say=met"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(lines_in(outcome.out), 5);
  EXPECT_THAT(outcome.out, HasSubstr("[4] met\n"));
  EXPECT_THAT(outcome.err, IsEmpty());
}

TEST_F(LauncherStart, SixtyFourRanks) {
  const Outcome outcome = run({"-n", "64"}, {"join", "barrier=all", "say=met"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(lines_in(outcome.out), 64);
  EXPECT_THAT(outcome.out, HasSubstr("[ 7] met\n"));
  EXPECT_THAT(outcome.out, HasSubstr("[63] met\n"));
}

TEST_F(LauncherStart, RanksAreToldTheirPlace) {
  const Outcome outcome =
      run({"-n", "3", "--env", "COLOUR=red", "--env", "EMPTY="},
          {"2:env=RANK", "2:env=WORLD_SIZE", "2:env=LOCAL_RANK", "2:env=LOCAL_WORLD_SIZE", "2:env=MASTER_ADDR",
           "2:env=MASTER_PORT", "2:env=COLOUR", "2:env=EMPTY", "2:env=OMP_NUM_THREADS", "2:env=TUTTI_STORE"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const char* line : {"[2] RANK=2\n", "[2] WORLD_SIZE=3\n", "[2] LOCAL_RANK=2\n", "[2] LOCAL_WORLD_SIZE=3\n",
                           "[2] MASTER_ADDR=127.0.0.1\n", "[2] COLOUR=red\n", "[2] EMPTY=\n"}) {
    EXPECT_THAT(outcome.out, HasSubstr(line));
  }
  EXPECT_THAT(outcome.out, HasSubstr("[2] TUTTI_STORE=unix:"));
  EXPECT_THAT(outcome.out, Not(HasSubstr("unset")));
}

TEST_F(LauncherStart, OneFreePortForAll) {
  const Outcome outcome = run({"-n", "3", "--no-prefix"}, {"env=MASTER_PORT"});
  const std::string first = outcome.out.substr(0, outcome.out.find('\n') + 1);
  EXPECT_EQ(outcome.out, first + first + first);
}

TEST_F(LauncherStart, ThreadsAreLeftToTheUser) {
  const Outcome outcome = start({.arguments = {"run", "-n", "1", rank_program_path(), "env=OMP_NUM_THREADS"},
                                 .variables = {"OMP_NUM_THREADS=13"}})
                              ->wait();
  EXPECT_THAT(outcome.out, HasSubstr("OMP_NUM_THREADS=13\n"));
}

TEST_F(LauncherStart, RanksHaveNoDescriptorsButTheirOwn) {
  const Outcome outcome = run({"-n", "3"}, {"descriptors"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const char* line : {"[0] descriptors 0 1 2 42\n", "[2] descriptors 0 1 2 42\n"}) {
    EXPECT_THAT(outcome.out, HasSubstr(line));
  }
}

TEST_F(LauncherStart, InputGoesToRankZero) {
  const Outcome outcome =
      start({.arguments = {"run", "-n", "3", rank_program_path(), "cat", "say=done"}, .input = "first\nsecond\n"})
          ->wait();
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("[0] first\n"));
  EXPECT_THAT(outcome.out, HasSubstr("[0] second\n"));
  EXPECT_EQ(lines_in(outcome.out), 5);
}

TEST_F(LauncherStart, BoundRanksAreWhereTheyShouldBe) {
  const Outcome outcome = run({"-n", "2", "--bind"}, {"cpus"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  cpu_set_t mask;
  CPU_ZERO(&mask);
  ASSERT_EQ(::sched_getaffinity(0, sizeof mask, &mask), 0);
  std::istringstream words(outcome.out);
  std::multiset<int> bound;
  for (std::string word; words >> word;) {
    if (word.find_first_not_of("0123456789") == std::string::npos) {
      bound.insert(std::stoi(word));
      EXPECT_TRUE(CPU_ISSET(std::stoi(word), &mask)) << word;
    }
  }
  if (CPU_COUNT(&mask) >= 2) {
    EXPECT_EQ(std::set<int>(bound.begin(), bound.end()).size(), bound.size()) << outcome.out;
    EXPECT_EQ(static_cast<int>(bound.size()), CPU_COUNT(&mask)) << outcome.out;
  }
}

TEST_F(LauncherStart, MoreBoundRanksThanCoresShareAndSaySo) {
  const std::string ranks = std::to_string(CPU_SETSIZE / 8 + 1);
  const Outcome outcome = run({"-n", ranks, "--bind=core", "--quiet"}, {"cpus"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("tutti run: more ranks (" + ranks + ") than cores"));
}

TEST_F(LauncherStart, AProgramThatIsNotThere) {
  const Outcome outcome = start({.arguments = {"run", "-n", "3", "--", "./nope"}})->wait();
  EXPECT_EQ(outcome.code, 127);
  EXPECT_EQ(outcome.err, "tutti run: cannot start './nope': No such file or directory\n");
}

TEST_F(LauncherStart, AProgramThatIsNotExecutable) {
  const std::string path = folder() + "/plain.txt";
  std::ofstream(path) << "just text\n";
  const Outcome outcome = start({.arguments = {"run", "-n", "3", "--", path}})->wait();
  EXPECT_EQ(outcome.code, 126);
  EXPECT_EQ(outcome.err, "tutti run: cannot start '" + path + "': Permission denied\n");
}

TEST_F(LauncherStart, AWrapperScript) {
  const std::string path = folder() + "/wrapper.sh";
  std::ofstream(path) << "#!/bin/sh\necho before\n\"$@\"\ncode=$?\necho after\nexit $code\n";
  ::chmod(path.c_str(), 0755);
  const Outcome outcome =
      start({.arguments = {"run", "-n", "2", path, rank_program_path(), "join", "barrier=x", "say=met", "1:exit=3"}})
          ->wait();
  EXPECT_EQ(outcome.code, 3);
  EXPECT_THAT(outcome.out, HasSubstr("[1] met\n"));
  EXPECT_THAT(outcome.err, HasSubstr("exited with code 3"));
}

TEST_F(LauncherStart, MistakesAreOneLine) {
  const std::pair<Words, const char*> cases[] = {
      {{"run"}, "which program?"},
      {{"run", "-n", "0", "x"}, "cannot run 0 ranks"},
      {{"run", "-n", "-1", "x"}, "cannot run -1 ranks"},
      {{"run", "-n", "1000000", "x"}, "cannot run 1000000 ranks"},
      {{"run", "-n", "many", "x"}, "'many'"},
      {{"run", "--frobnicate", "x"}, "--frobnicate"},
      {{"run", "--log-dir", "/proc/nowhere/logs", "true"}, "cannot make the log directory '/proc/nowhere/logs'"},
      {{"frobnicate"}, "'frobnicate'"},
      {{"--frobnicate"}, "'--frobnicate'"},
  };
  for (const auto& [arguments, part] : cases) {
    const Outcome outcome = start({.arguments = arguments})->wait();
    EXPECT_GT(outcome.code, 0) << part;
    EXPECT_EQ(lines_in(outcome.err), 1) << outcome.err;
    EXPECT_THAT(outcome.err, StartsWith(arguments[0] == "run" ? "tutti run: " : "tutti: "));
    EXPECT_THAT(outcome.err, HasSubstr(part));
    EXPECT_THAT(outcome.out, IsEmpty());
  }
}

TEST_F(LauncherStart, HelpHasAnExample) {
  for (const Words& arguments : {Words{"--help"}, Words{"run", "--help"}}) {
    const Outcome outcome = start({.arguments = arguments})->wait();
    EXPECT_EQ(outcome.code, 0);
    EXPECT_THAT(outcome.out, HasSubstr("tutti run -n"));
    EXPECT_THAT(outcome.err, IsEmpty());
  }
  EXPECT_THAT(start({.arguments = {"--version"}})->wait().out, StartsWith("tutti "));
}

TEST_F(LauncherStart, ADirectoryThatIsGone) {
  const std::string gone = folder() + "/gone";
  const Words wrapper = after_shell("mkdir " + gone + "; cd " + gone + "; rmdir " + gone);
  const Outcome here =
      start({.arguments = {"run", "-n", "1", rank_program_path(), "say=here"}, .wrapper = wrapper})->wait();
  EXPECT_EQ(here.code, 0) << here.err;
  EXPECT_EQ(here.out, "[0] here\n");
  const Outcome elsewhere =
      start({.arguments = {"run", "--hosts", "localhost:1", "--launch-agent", "", "true"}, .wrapper = wrapper})->wait();
  EXPECT_EQ(elsewhere.code, 1);
  EXPECT_THAT(elsewhere.err, StartsWith("tutti run: cannot tell the current directory's path"));
}

TEST_F(LauncherStart, TooFewDescriptors) {
  const Outcome outcome =
      start({.arguments = {"run", "-n", "1", rank_program_path(), "say=x"}, .wrapper = after_shell("ulimit -n 20")})
          ->wait();
  EXPECT_EQ(outcome.code, 1);
  // Which step runs out depends on how many descriptors were inherited; each says so in its words.
  EXPECT_THAT(outcome.err, ::testing::AnyOf(HasSubstr("too few descriptors"), HasSubstr("Too many open files")));
}

}  // namespace
}  // namespace tutti::tests
