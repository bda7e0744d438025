#include "tests/multiprocess/launched_tool.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "tests/multiprocess/process_scan.h"

namespace tutti::tests {
namespace {

using std::chrono::steady_clock;

std::pair<FileDescriptor, FileDescriptor> make_pipe() {
  int ends[2];
  EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (const std::string& text : texts) {
    result.push_back(const_cast<char*>(text.c_str()));
  }
  result.push_back(nullptr);
  return result;
}

int count_of(const std::string& text, const std::string& part) {
  int count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) {
    ++count;
  }
  return count;
}

template <class Predicate>
bool within(std::chrono::milliseconds limit, const Predicate& holds) {
  const auto end = steady_clock::now() + limit;
  while (!holds()) {
    if (steady_clock::now() > end) {
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

}  // namespace

std::string tool_path() { return TUTTI_TOOL; }
std::string rank_program_path() { return RANK_PROGRAM; }

std::vector<std::string> after_shell(const std::string& commands, const std::string& redirection) {
  return {"sh", "-c", fmt::format("{}; exec \"$@\" {}", commands, redirection), "sh"};
}

LaunchedTool::LaunchedTool(Options options) {
  options.arguments.insert(options.arguments.begin(), tool_path());
  options.arguments.insert(options.arguments.begin(), options.wrapper.begin(), options.wrapper.end());
  for (char** entry = environ; *entry != nullptr; ++entry) {
    options.variables.emplace_back(*entry);
  }
  const auto arguments = pointers(options.arguments);
  const auto variables = pointers(options.variables);
  auto [in_read, in_write] = make_pipe();
  auto [out_read, out_write] = make_pipe();
  auto [err_read, err_write] = make_pipe();
  pid_ = ::fork();
  if (pid_ == 0) {
    ::dup2(in_read.get(), 0);
    ::dup2(out_write.get(), 1);
    ::dup2(err_write.get(), 2);
    ::signal(SIGINT, SIG_DFL);
    ::execvpe(arguments[0], arguments.data(), variables.data());
    ::_exit(99);
  }
  EXPECT_EQ(::write(in_write.get(), options.input.data(), options.input.size()),
            static_cast<ssize_t>(options.input.size()));
  out_ = std::move(out_read);
  err_ = std::move(err_read);
  out_reader_ = std::jthread([this, sink = options.output_sink] { collect(out_.get(), outcome_.out, sink); });
  err_reader_ = std::jthread([this] { collect(err_.get(), outcome_.err, {}); });
}

LaunchedTool::~LaunchedTool() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
}

void LaunchedTool::collect(int fd, std::string& text, const std::function<void(std::string_view)>& sink) {
  std::vector<char> buffer(1 << 16);
  for (ssize_t got = 0; (got = ::read(fd, buffer.data(), buffer.size())) > 0;) {
    const std::string_view bytes(buffer.data(), static_cast<std::size_t>(got));
    if (sink) {
      sink(bytes);
      continue;
    }
    const std::lock_guard lock(mutex_);
    text += bytes;
    changed_.notify_all();
  }
}

void LaunchedTool::signal(int number) const { ::kill(pid_, number); }

void LaunchedTool::stop_reading() {
  // The reader holds the descriptor in read(): put something closed in its place.
  const FileDescriptor nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  ::dup3(nothing.get(), out_.get(), O_CLOEXEC);
}

bool LaunchedTool::saw(const std::string& text, int times) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, std::chrono::seconds(30),
                           [&] { return count_of(outcome_.out, text) + count_of(outcome_.err, text) >= times; });
}

Outcome LaunchedTool::wait() {
  int status = 0;
  EXPECT_EQ(::waitpid(pid_, &status, 0), pid_);
  pid_ = -1;
  out_reader_.join();
  err_reader_.join();
  outcome_.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  outcome_.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  return outcome_;
}

void LauncherTest::SetUp() {
  // What escapes the launcher falls to this process, and is found by waiting for it.
  ASSERT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
  std::string name = (std::filesystem::temp_directory_path() / "tutti-launcher-XXXXXX").string();
  ASSERT_NE(::mkdtemp(name.data()), nullptr);
  folder_ = name;
  // A sanitized tool would sleep for a second before it is gone.
  ::setenv("TSAN_OPTIONS", "atexit_sleep_ms=0", 0);
  marker_ = "RANK_PROGRAM_REPORT=" + folder_;
}

void LauncherTest::TearDown() {
  expect_all_gone();
  expect_no_zombies();
  expect_nothing_open();
  std::filesystem::remove_all(folder_);
}

std::unique_ptr<LaunchedTool> LauncherTest::start(const Words& options, const Words& verbs) {
  Words arguments{"run"};
  arguments.insert(arguments.end(), options.begin(), options.end());
  arguments.insert(arguments.end(), {"--", rank_program_path()});
  arguments.insert(arguments.end(), verbs.begin(), verbs.end());
  return start(LaunchedTool::Options{.arguments = std::move(arguments)});
}

std::unique_ptr<LaunchedTool> LauncherTest::start(LaunchedTool::Options options) {
  options.variables.push_back(marker_);
  return std::make_unique<LaunchedTool>(std::move(options));
}

std::vector<pid_t> LauncherTest::job_processes() const { return processes_with(marker_); }

void LauncherTest::expect_all_gone() const {
  EXPECT_TRUE(within(std::chrono::seconds(1), [&] { return job_processes().empty(); }))
      << describe_processes(job_processes());
}

pid_t LauncherTest::supervisor_of(const LaunchedTool& tool) const {
  for (const pid_t pid : job_processes()) {
    if (parent_of(pid) == tool.pid()) {
      return pid;
    }
  }
  ADD_FAILURE() << "no supervisor";
  return 0;
}

void LauncherTest::expect_no_zombies() const {
  // What outlived its parents is a child of this process now. A process on its way out has no environment any more,
  // but takes a moment until it can be waited for.
  const bool alone = within(std::chrono::seconds(1), [] {
    pid_t pid = 0;
    while ((pid = ::waitpid(-1, nullptr, WNOHANG)) > 0) {
    }
    return pid < 0;
  });
  EXPECT_TRUE(alone) << "a process was left behind";
}

void LauncherTest::expect_nothing_open() const {
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) {
      continue;  // not a rank's report
    }
    std::ifstream report(entry.path());
    std::string store;
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
    report >> store >> device >> inode;
    ASSERT_FALSE(store.empty());
    ASSERT_NE(inode, 0U);
    const std::string socket = store.substr(store.find(':') + 1);
    EXPECT_EQ(file_text("/proc/net/unix").find(socket), std::string::npos) << socket;
    EXPECT_FALSE(somebody_has_open(device, inode)) << "the secret's memory";
  }
}

}  // namespace tutti::tests
