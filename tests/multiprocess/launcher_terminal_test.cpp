// On a terminal: colour, and Ctrl-C and Ctrl-Z, which the terminal itself turns into a signal for its foreground group.
#include <poll.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include <gmock/gmock.h>

#include "tests/multiprocess/launched_tool.h"
#include "tests/multiprocess/process_scan.h"

namespace tutti::tests {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class LauncherTerminal : public LauncherTest {
 protected:
  void TearDown() override {
    terminal_.reset();
    if (pid_ > 0) {
      ::waitpid(pid_, nullptr, 0);
    }
    LauncherTest::TearDown();
  }

  /// `tutti run OPTIONS -- rank_program VERBS` in a session of its own, on a new terminal.
  void start_on_terminal(const Words& options, const Words& verbs) { start_as({}, options, verbs); }

  /// The same, as a job of a shell: Ctrl-Z stops it, Enter lets it go on in the foreground.
  void start_in_shell(const Words& options, const Words& verbs) {
    start_as({"sh", "-c", "set -m; \"$@\"; echo stopped with $?; read enter; fg", "sh"}, options, verbs);
  }

  /// Living ranks of the job.
  std::vector<pid_t> ranks() const {
    std::vector<pid_t> found;
    for (const pid_t pid : job_processes()) {
      if (file_text("/proc/" + std::to_string(pid) + "/comm") == "rank_program\n") {
        found.push_back(pid);
      }
    }
    return found;
  }

  /// Whether all of so many ranks get into a state within half a minute.
  bool ranks_are(char state, std::size_t count) const {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (std::chrono::steady_clock::now() < end) {
      const auto pids = ranks();
      if (pids.size() == count &&
          std::all_of(pids.begin(), pids.end(), [=](pid_t pid) { return state_of(pid) == state; })) {
        return true;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
  }

  /// What ranks wait for that are told to `await` it.
  std::string signpost() const { return folder() + "/go"; }
  void let_ranks_go() const { std::ofstream(signpost()) << "go\n"; }

  void type(const std::string& keys) const {
    EXPECT_EQ(::write(terminal_.get(), keys.data(), keys.size()), std::ssize(keys));
  }

  /// Reads until the text was shown `times` times, or the terminal closes, or half a minute is over.
  bool shows(const std::string& text, int times = 1) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (count(text) < times && std::chrono::steady_clock::now() < end) {
      pollfd ready{.fd = terminal_.get(), .events = POLLIN, .revents = 0};
      char buffer[4096];
      const ssize_t got = ::poll(&ready, 1, 1000) > 0 ? ::read(terminal_.get(), buffer, sizeof buffer) : 0;
      if (got < 0) {
        break;
      }
      shown_.append(buffer, static_cast<std::size_t>(got));
    }
    return count(text) >= times;
  }

  int exit_code() {
    shows("\x04never");  // until the terminal closes
    int status = 0;
    EXPECT_EQ(::waitpid(pid_, &status, 0), pid_);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  const std::string& shown() const { return shown_; }
  void forget_shown() { shown_.clear(); }

 private:
  void start_as(Words words, const Words& options, const Words& verbs) {
    words.insert(words.end(), {tool_path(), "run"});
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {"--", rank_program_path()});
    words.insert(words.end(), verbs.begin(), verbs.end());
    std::vector<char*> arguments;
    for (std::string& word : words) {
      arguments.push_back(word.data());
    }
    arguments.push_back(nullptr);
    int master = -1;
    pid_ = ::forkpty(&master, nullptr, nullptr, nullptr);
    if (pid_ == 0) {
      ::setenv("RANK_PROGRAM_REPORT", folder().c_str(), 1);
      ::execvp(arguments[0], arguments.data());
      ::_exit(99);
    }
    terminal_ = FileDescriptor(master);
  }

  int count(const std::string& text) const {
    int found = 0;
    for (auto at = shown_.find(text); at != std::string::npos; at = shown_.find(text, at + 1)) {
      ++found;
    }
    return found;
  }

  pid_t pid_ = -1;
  FileDescriptor terminal_;
  std::string shown_;
};

TEST_F(LauncherTerminal, LinesHaveColour) {
  ::unsetenv("NO_COLOR");
  start_on_terminal({"-n", "2"}, {"say=hello"});
  EXPECT_EQ(exit_code(), 0);
  EXPECT_THAT(shown(), HasSubstr("\x1b[36m[0] \x1b[0mhello"));
  EXPECT_THAT(shown(), HasSubstr("\x1b[32m[1] \x1b[0mhello"));
}

TEST_F(LauncherTerminal, ButNotWhenTheUserSaysSo) {
  ::setenv("NO_COLOR", "1", 1);
  start_on_terminal({"-n", "2"}, {"say=hello"});
  ::unsetenv("NO_COLOR");
  EXPECT_EQ(exit_code(), 0);
  EXPECT_THAT(shown(), Not(HasSubstr("\x1b")));
}

TEST_F(LauncherTerminal, CtrlCIsOneStopNotTwo) {
  // The terminal signals every process of the foreground group; the job must take it for one order all the same.
  start_on_terminal({"-n", "3", "--grace", "1"}, {"ignore=2", "ignore=15", "say=ready", "sleep=60"});
  ASSERT_TRUE(shows("ready", 3));
  const auto pressed = std::chrono::steady_clock::now();
  type("\x03");
  EXPECT_EQ(exit_code(), 130);
  EXPECT_GE(std::chrono::steady_clock::now() - pressed, std::chrono::milliseconds(900)) << "no grace was given";
  EXPECT_THAT(shown(), HasSubstr("press Ctrl-C again"));
}

TEST_F(LauncherTerminal, CtrlCTwiceIsAtOnce) {
  start_on_terminal({"-n", "3", "--grace", "40"}, {"ignore=2", "ignore=15", "say=ready", "sleep=60"});
  ASSERT_TRUE(shows("ready", 3));
  type("\x03");
  ASSERT_TRUE(shows("press Ctrl-C again"));
  type("\x03");
  EXPECT_EQ(exit_code(), 130);
}

TEST_F(LauncherTerminal, CtrlZStopsTheRanksToo) {
  const Words here{"-n", "3"};
  const Words behind_agents{"--hosts", "localhost:1,127.0.0.1:2", "--launch-agent", ""};
  for (const Words& options : {here, behind_agents}) {
    start_in_shell(options, {"say=ready", "await=" + signpost(), "say=done"});
    ASSERT_TRUE(shows("ready", 3));
    type("\x1a");
    ASSERT_TRUE(shows("stopped with 148")) << shown();  // 128 + SIGTSTP
    ASSERT_TRUE(ranks_are('T', 3)) << shown();
    let_ranks_go();
    EXPECT_TRUE(ranks_are('T', 3)) << shown();
    type("\n");
    EXPECT_EQ(exit_code(), 0);
    EXPECT_TRUE(shows("done", 3)) << shown();
    std::filesystem::remove(signpost());
    forget_shown();
  }
}

TEST_F(LauncherTerminal, AStoppedJobGoesWithItsTerminal) {
  start_in_shell({"-n", "3"}, {"say=ready", "sleep=60"});
  ASSERT_TRUE(shows("ready", 3));
  type("\x1a");
  ASSERT_TRUE(shows("stopped with 148")) << shown();
  ASSERT_TRUE(ranks_are('T', 3));
}

TEST_F(LauncherTerminal, CtrlZDoesNothingWhereNobodyCouldContinueTheJob) {
  // Without a shell above it the kernel does not stop the tool; ranks that were would stay so for ever.
  start_on_terminal({"-n", "3"}, {"say=ready", "await=" + signpost(), "say=done"});
  ASSERT_TRUE(shows("ready", 3));
  type("\x1a");
  ASSERT_TRUE(shows("^Z"));
  let_ranks_go();
  EXPECT_EQ(exit_code(), 0);
  EXPECT_TRUE(shows("done", 3)) << shown();
}

TEST_F(LauncherTerminal, RanksDoNotReadTheTerminal) {
  start_on_terminal({"-n", "2"}, {"cat", "say=done"});
  EXPECT_EQ(exit_code(), 0);
  EXPECT_THAT(shown(), HasSubstr("done"));
}

}  // namespace
}  // namespace tutti::tests
