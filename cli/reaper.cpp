#include "cli/reaper.h"

#include <dirent.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <map>
#include <memory>
#include <optional>

namespace tutti::cli {
namespace {

struct DirectoryClose {
  void operator()(DIR* directory) const { ::closedir(directory); }
};

struct FileClose {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

/// A process as /proc/PID/stat has it.
struct ProcessStat {
  char state = 0;
  pid_t parent = 0;
  unsigned flags = 0;  ///< the kernel's PF_...
};

/// Nullopt when it is gone.
std::optional<ProcessStat> read_stat(pid_t pid) {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/stat", pid);
  const std::unique_ptr<std::FILE, FileClose> file(std::fopen(path, "re"));
  if (!file) {
    return std::nullopt;
  }
  char text[512];
  const std::size_t length = std::fread(text, 1, sizeof text - 1, file.get());
  text[length] = '\0';
  // The name stands in parentheses and may itself hold any character: the last one closes it.
  const char* after_name = std::strrchr(text, ')');
  ProcessStat stat;
  if (after_name == nullptr ||
      std::sscanf(after_name + 1, " %c %d %*d %*d %*d %*d %u", &stat.state, &stat.parent, &stat.flags) != 3) {
    return std::nullopt;
  }
  return stat;
}

}  // namespace

Status become_subreaper() {
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0) {
    return system_error("cannot become the reaper of descendants", errno);
  }
  return {};
}

std::vector<pid_t> descendants(pid_t root) {
  const std::unique_ptr<DIR, DirectoryClose> processes(::opendir("/proc"));
  if (!processes) {
    return {};
  }
  std::multimap<pid_t, pid_t> children_of;
  while (const dirent* entry = ::readdir(processes.get())) {
    pid_t pid = 0;
    const char* end = entry->d_name + std::strlen(entry->d_name);
    if (std::from_chars(entry->d_name, end, pid).ptr != end) {
      continue;
    }
    if (const auto stat = read_stat(pid); stat && stat->state != 'Z') {
      children_of.emplace(stat->parent, pid);
    }
  }
  std::vector<pid_t> found{root};
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto [first, last] = children_of.equal_range(found[i]);
    for (auto child = first; child != last; ++child) {
      found.push_back(child->second);
    }
  }
  found.erase(found.begin());
  return found;
}

bool is_exiting(pid_t pid) {
  constexpr unsigned kExiting = 0x4;  // PF_EXITING, which no header for programs has
  const auto stat = read_stat(pid);
  return stat && (stat->flags & kExiting) != 0;
}

bool reap(const Reaped& reaped) {
  for (;;) {
    int status = 0;
    const pid_t pid = ::waitpid(-1, &status, WNOHANG);
    if (pid > 0) {
      reaped(pid, status);
    } else if (pid == 0) {
      return true;
    } else if (errno != EINTR) {
      return false;
    }
  }
}

Result<FileDescriptor> watch_children(EventLoop& loop, Reaped reaped) {
  sigset_t child_signal;
  sigemptyset(&child_signal);
  sigaddset(&child_signal, SIGCHLD);
  FileDescriptor signals(::signalfd(-1, &child_signal, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals.valid()) {
    return system_error("cannot watch children", errno);
  }
  const auto handler = [fd = signals.get(), reaped = std::move(reaped)](std::uint32_t) {
    signalfd_siginfo info;
    while (::read(fd, &info, sizeof info) > 0) {
    }
    reap(reaped);
  };
  if (const Status watched = loop.watch(signals.get(), EPOLLIN, handler); !watched) {
    return watched.error();
  }
  return signals;
}

bool end_descendants(Deadline deadline, const Reaped& reaped) {
  while (reap(reaped)) {
    if (deadline.expired()) {
      return false;
    }
    for (const pid_t pid : descendants(::getpid())) {
      ::kill(pid, SIGKILL);
    }
    const timespec pause{.tv_sec = 0, .tv_nsec = 1'000'000};
    ::nanosleep(&pause, nullptr);
  }
  return true;
}

}  // namespace tutti::cli
