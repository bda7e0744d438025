#include "cli/child.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdint>

#include <fmt/format.h>

#include "tutti/base/file_descriptor.h"

namespace tutti::cli {
namespace {

constexpr std::size_t kWordBits = sizeof(unsigned long) * CHAR_BIT;

/// Which step of becoming the program failed, and why; goes through the status pipe.
enum class Step : std::int32_t { descriptors, directory, execute };
struct Report {
  Step step;
  std::int32_t error;
};

/// Everything the child needs, made before fork(): after it only plain system calls are safe, since other threads may
/// have held locks.
struct Prepared {
  std::vector<char*> arguments;
  std::vector<char*> environment;
  std::vector<unsigned long> cpus;
  std::vector<unsigned long> nodes;
  pid_t parent;
  int status;
};

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (const std::string& text : texts) {
    result.push_back(const_cast<char*>(text.c_str()));  // execve() takes, but does not change, them
  }
  result.push_back(nullptr);
  return result;
}

std::vector<unsigned long> bits(const std::vector<int>& numbers) {
  std::vector<unsigned long> words;
  for (const int number : numbers) {
    const auto index = static_cast<std::size_t>(number);
    words.resize(std::max(words.size(), index / kWordBits + 1));
    words[index / kWordBits] |= 1UL << (index % kWordBits);
  }
  return words;
}

[[noreturn]] void give_up(int status, Step step) {
  const Report report{step, errno};
  [[maybe_unused]] const auto written = ::write(status, &report, sizeof report);
  ::_exit(127);
}

/// In the child: processors and memory. A kernel or container that does not allow it costs speed, not the run.
void take_place(const Prepared& prepared) {
  if (!prepared.cpus.empty()) {
    ::syscall(SYS_sched_setaffinity, 0, prepared.cpus.size() * sizeof(unsigned long), prepared.cpus.data());
  }
  if (!prepared.nodes.empty()) {
    ::syscall(SYS_set_mempolicy, MPOL_BIND, prepared.nodes.data(), prepared.nodes.size() * kWordBits + 1);
  }
}

/// In the child: standard streams and the secret; everything else closes when the program starts.
void take_descriptors(const ChildSpec& spec, const Prepared& prepared) {
  if (::dup2(spec.input, 0) < 0 || ::dup2(spec.output, 1) < 0 || ::dup2(spec.errors, 2) < 0) {
    give_up(prepared.status, Step::descriptors);
  }
  if (::syscall(SYS_close_range, 3U, ~0U, CLOSE_RANGE_CLOEXEC) != 0) {
    for (int fd = 3; fd < 4096; ++fd) {  // a kernel before 5.11
      ::fcntl(fd, F_SETFD, FD_CLOEXEC);
    }
  }
  if (spec.secret >= 0) {
    if (::dup2(spec.secret, kSecretDescriptor) < 0 || ::fcntl(kSecretDescriptor, F_SETFD, 0) != 0) {
      give_up(prepared.status, Step::descriptors);
    }
  }
}

[[noreturn]] void become(const ChildSpec& spec, const Prepared& prepared) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  if (::getppid() != prepared.parent) {
    ::_exit(127);  // the parent died before it could take us with it
  }
  for (const int signal : {SIGPIPE, SIGTTOU, SIGXFSZ}) {  // those that the parent ignores for itself
    ::signal(signal, sigismember(&spec.inheritance.ignored, signal) == 1 ? SIG_IGN : SIG_DFL);
  }
  take_descriptors(spec, prepared);
  take_place(prepared);
  if (!spec.directory.empty() && ::chdir(spec.directory.c_str()) != 0) {
    give_up(prepared.status, Step::directory);
  }
  ::setrlimit(RLIMIT_NOFILE, &spec.inheritance.descriptors);
  ::sigprocmask(SIG_SETMASK, &spec.inheritance.mask, nullptr);
  ::execvpe(prepared.arguments[0], prepared.arguments.data(), prepared.environment.data());
  give_up(prepared.status, Step::execute);
}

Error explain(const ChildSpec& spec, const Report& report) {
  switch (report.step) {
    case Step::descriptors: return system_error("cannot set up a rank's descriptors", report.error);
    case Step::directory:
      return system_error(fmt::format("cannot change to directory '{}'", spec.directory), report.error);
    case Step::execute: break;
  }
  Error error = system_error(fmt::format("cannot start '{}'", spec.command[0]), report.error);
  const bool absent = report.error == ENOENT || report.error == ENOTDIR;
  error.code = absent ? Code::not_found : Code::refused;
  return error;
}

Error too_few_descriptors() {
  return {.code = Code::resource_exhausted,
          .message =
              fmt::format("too few descriptors: a process needs more than {}, see ulimit -n", kSecretDescriptor + 1)};
}

}  // namespace

Result<pid_t> spawn(const ChildSpec& spec) {
  require(!spec.command.empty(), "a child needs a program");
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    return errno == EMFILE ? too_few_descriptors() : system_error("cannot make a pipe", errno);
  }
  const FileDescriptor read_end(ends[0]);
  FileDescriptor low(ends[1]);
  // Beyond the secret's number, which the child overwrites.
  FileDescriptor write_end(::fcntl(low.get(), F_DUPFD_CLOEXEC, kSecretDescriptor + 1));
  const int beyond_limit = errno;
  low.reset();
  if (!write_end.valid()) {
    return beyond_limit == EINVAL || beyond_limit == EMFILE ? too_few_descriptors()
                                                            : system_error("cannot make a pipe", beyond_limit);
  }
  const Prepared prepared{.arguments = pointers(spec.command),
                          .environment = pointers(spec.environment),
                          .cpus = bits(spec.placement.cpus),
                          .nodes = bits(spec.placement.nodes),
                          .parent = ::getpid(),
                          .status = write_end.get()};
  const pid_t child = ::fork();
  if (child < 0) {
    return system_error("cannot start another process", errno);
  }
  if (child == 0) {
    become(spec, prepared);
  }
  ::setpgid(child, child);  // also here, so that a signal to the group cannot come too early
  write_end.reset();
  Report report{};
  ssize_t got = 0;
  do {
    got = ::read(read_end.get(), &report, sizeof report);
  } while (got < 0 && errno == EINTR);
  if (got == static_cast<ssize_t>(sizeof report)) {
    ::waitpid(child, nullptr, 0);
    return explain(spec, report);
  }
  return child;
}

int spawn_exit_code(const Error& error) {
  return error.code == Code::not_found ? 127 : error.code == Code::refused ? 126 : 1;
}

}  // namespace tutti::cli
