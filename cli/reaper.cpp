#include "cli/reaper.h"

#include <dirent.h>
#include <sys/prctl.h>
#include <sys/wait.h>

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

/// Parent of a process, from /proc/PID/stat; nullopt when it is gone or a zombie.
std::optional<pid_t> living_parent(pid_t pid) {
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
  char state = 0;
  int parent = 0;
  if (after_name == nullptr || std::sscanf(after_name + 1, " %c %d", &state, &parent) != 2 || state == 'Z') {
    return std::nullopt;
  }
  return parent;
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
    if (const auto parent = living_parent(pid)) {
      children_of.emplace(*parent, pid);
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
