#include "tests/multiprocess/process_scan.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/format.h>

namespace tutti::tests {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  return names;
}

}  // namespace

std::vector<pid_t> all_processes() {
  std::vector<pid_t> pids;
  for (const std::string& name : names_in("/proc")) {
    pid_t pid = 0;
    const char* end = name.data() + name.size();
    if (std::from_chars(name.data(), end, pid).ptr == end && pid > 0) {
      pids.push_back(pid);
    }
  }
  return pids;
}

std::string file_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<pid_t> processes_with(const std::string& text) {
  std::vector<pid_t> found;
  for (const pid_t pid : all_processes()) {
    // A zombie's environment reads as empty.
    if (pid != ::getpid() && file_text(fmt::format("/proc/{}/environ", pid)).find(text) != std::string::npos) {
      found.push_back(pid);
    }
  }
  return found;
}

std::string describe_processes(const std::vector<pid_t>& pids) {
  std::string text;
  for (const pid_t pid : pids) {
    std::string command = file_text(fmt::format("/proc/{}/cmdline", pid));
    std::replace(command.begin(), command.end(), '\0', ' ');
    text += fmt::format("pid {} (parent {}): {}; ", pid, parent_of(pid), command);
  }
  return text;
}

pid_t parent_of(pid_t pid) {
  const std::string status = file_text(fmt::format("/proc/{}/status", pid));
  const auto at = status.find("PPid:");
  return at == std::string::npos ? 0 : std::stoi(status.substr(at + 5));
}

char state_of(pid_t pid) {
  const std::string stat = file_text(fmt::format("/proc/{}/stat", pid));
  const auto name_end = stat.rfind(')');
  return name_end == std::string::npos || name_end + 2 >= stat.size() ? '\0' : stat[name_end + 2];
}

bool somebody_has_open(std::uint64_t device, std::uint64_t inode) {
  for (const pid_t pid : all_processes()) {
    const std::string folder = fmt::format("/proc/{}/fd", pid);
    for (const std::string& name : names_in(folder)) {
      struct stat info {};
      if (::stat((folder + "/" + name).c_str(), &info) == 0 && info.st_dev == device && info.st_ino == inode) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace tutti::tests
