#pragma once

#include <sys/types.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tutti/base/file_descriptor.h"

namespace tutti::tests {

/// How a run of the tool went.
struct Outcome {
  int code = -1;   ///< exit code; -1 when it was killed
  int signal = 0;  ///< what killed it
  std::string out;
  std::string err;
};

/// Paths of what the build made.
std::string tool_path();
std::string rank_program_path();

/// A wrapper that runs shell commands first: sh -c 'COMMANDS; exec "$@" REDIRECTION'.
std::vector<std::string> after_shell(const std::string& commands, const std::string& redirection = "");

/// `tutti` with arguments, as a child whose output is collected while it runs.
class LaunchedTool {
 public:
  using Words = std::vector<std::string>;
  struct Options {
    Words arguments;
    Words wrapper = {};      ///< a command in front of the tool, one that turns into it (ip netns exec NAME)
    Words variables = {};    ///< "NAME=VALUE", on top of the test's own
    std::string input = {};  ///< what it finds on its standard input
    /// Takes standard output instead of `Outcome::out`; called from a thread of the tool's own.
    std::function<void(std::string_view)> output_sink = {};
  };

  explicit LaunchedTool(Options options);
  ~LaunchedTool();
  LaunchedTool(const LaunchedTool&) = delete;
  LaunchedTool& operator=(const LaunchedTool&) = delete;

  pid_t pid() const { return pid_; }
  void signal(int number) const;
  /// Closes the reading end of its standard output.
  void stop_reading();

  /// Whether `text` came on either stream within half a minute, at least `times` times.
  bool saw(const std::string& text, int times = 1);

  /// Waits for its end and for the end of its output.
  Outcome wait();

 private:
  void collect(int fd, std::string& text, const std::function<void(std::string_view)>& sink);

  pid_t pid_ = -1;
  FileDescriptor out_;
  FileDescriptor err_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Outcome outcome_;
  std::jthread out_reader_;
  std::jthread err_reader_;
};

/// A test that drives the tool, and afterwards looks that nothing is left: no process, zombie, socket or memory.
class LauncherTest : public ::testing::Test {
 protected:
  using Words = LaunchedTool::Words;

  void SetUp() override;
  void TearDown() override;

  /// `tutti run OPTIONS -- rank_program VERBS`
  std::unique_ptr<LaunchedTool> start(const Words& options, const Words& verbs);
  std::unique_ptr<LaunchedTool> start(LaunchedTool::Options options);
  Outcome run(const Words& options, const Words& verbs) { return start(options, verbs)->wait(); }

  /// Processes of this test's jobs that live.
  std::vector<pid_t> job_processes() const;
  /// Whether they are all gone within a second: what the launcher promises, however it ends.
  void expect_all_gone() const;

  /// The launcher's second process.
  pid_t supervisor_of(const LaunchedTool& tool) const;

  const std::string& folder() const { return folder_; }

 private:
  void expect_no_zombies() const;
  void expect_nothing_open() const;

  std::string folder_;  ///< for this test alone; removed after it
  std::string marker_;
};

}  // namespace tutti::tests
