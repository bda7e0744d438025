// On a terminal: colour, and a Ctrl-C that the terminal itself turns into a signal for its foreground group.
#include <poll.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>

#include <gmock/gmock.h>

#include "tests/multiprocess/launched_tool.h"

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
  void start_on_terminal(const Words& options, const Words& verbs) {
    Words words{tool_path(), "run"};
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
      ::execv(arguments[0], arguments.data());
      ::_exit(99);
    }
    terminal_ = FileDescriptor(master);
  }

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

 private:
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

TEST_F(LauncherTerminal, RanksDoNotReadTheTerminal) {
  start_on_terminal({"-n", "2"}, {"cat", "say=done"});
  EXPECT_EQ(exit_code(), 0);
  EXPECT_THAT(shown(), HasSubstr("done"));
}

}  // namespace
}  // namespace tutti::tests
