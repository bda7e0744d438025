#include "cli/system_facts.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <sstream>

#include <fmt/format.h>

namespace tutti::cli {
namespace {

/// The smaller of two where a missing one is no limit.
std::optional<double> least(std::optional<double> a, std::optional<double> b) {
  return a && b ? std::min(*a, *b) : a ? a : b;
}

/// Version 2 has one line "0::/path"; version 1 has "4:cpu,cpuacct:/path".
std::string cgroup_path(const std::string& controller, bool version_2) {
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (second == std::string::npos) {
      continue;
    }
    const std::string controllers = fmt::format(",{},", line.substr(first + 1, second - first - 1));
    if (version_2 ? controllers == ",," : controllers.find("," + controller + ",") != std::string::npos) {
      return line.substr(second + 1);
    }
  }
  return {};
}

void add_with_parents(std::vector<std::string>& folders, const std::string& mount, const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (path.empty() || !fs::is_directory(mount, error)) {
    return;
  }
  for (fs::path part = path;; part = part.parent_path()) {
    folders.push_back(mount + (part == "/" ? "" : part.string()));
    if (part == "/" || part.empty()) {
      return;
    }
  }
}

}  // namespace

std::optional<std::string> first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  return std::getline(file, line) ? std::optional(line) : std::nullopt;
}

std::optional<double> number_in(const std::string& path) {
  const auto line = first_line(path);
  char* end = nullptr;
  const double number = line ? std::strtod(line->c_str(), &end) : 0;
  return line && end != line->c_str() ? std::optional(number) : std::nullopt;
}

std::string chosen(const std::string& choices) {
  const auto open = choices.find('[');
  const auto close = choices.find(']', open);
  return close == std::string::npos ? choices : choices.substr(open + 1, close - open - 1);
}

std::vector<std::string> cgroup_folders(const std::string& controller) {
  std::vector<std::string> folders;
  add_with_parents(folders, "/sys/fs/cgroup/" + controller, cgroup_path(controller, false));
  add_with_parents(folders, "/sys/fs/cgroup", cgroup_path(controller, true));
  return folders;
}

std::optional<double> cgroup_processors() {
  std::optional<double> limit;
  for (const std::string& folder : cgroup_folders("cpu")) {
    if (const auto line = first_line(folder + "/cpu.max")) {  // "200000 100000" or "max 100000"
      std::istringstream words(*line);
      double quota = 0;
      double period = 0;
      if (words >> quota >> period && period > 0) {
        limit = least(limit, quota / period);
      }
    }
    const auto quota = number_in(folder + "/cpu.cfs_quota_us");
    const auto period = number_in(folder + "/cpu.cfs_period_us");
    if (quota && period && *quota > 0 && *period > 0) {
      limit = least(limit, *quota / *period);
    }
  }
  return limit;
}

std::optional<double> cgroup_memory() {
  constexpr double kUnlimited = 1e18;  // version 1 writes a huge number where there is no limit
  std::optional<double> limit;
  for (const std::string& folder : cgroup_folders("memory")) {
    for (const char* name : {"/memory.max", "/memory.limit_in_bytes"}) {
      const auto bytes = number_in(folder + name);
      if (bytes && *bytes < kUnlimited) {
        limit = least(limit, bytes);
      }
    }
  }
  return limit;
}

double memory_info(const std::string& name) {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(name + ":")) {
      return std::stod(line.substr(name.size() + 1)) * 1024;
    }
  }
  return 0;
}

double memory_for_ranks() {
  const double available = memory_info("MemAvailable");
  if (available <= 0) {
    return std::numeric_limits<double>::infinity();  // the kernel does not say
  }
  return least(available, cgroup_memory()).value_or(available) + memory_info("SwapFree");
}

int usable_cores(const plan::Topology& topology) {
  const auto cores = static_cast<double>(topology.cores.size());
  return std::max(1, static_cast<int>(std::min(cores, cgroup_processors().value_or(cores))));
}

std::string find_program(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    auto candidate = fmt::format("{}/{}", folder, name);
    if (::access(candidate.c_str(), X_OK) == 0) {
      return candidate;
    }
  }
  return {};
}

std::string first_line_of_command(const std::string& command) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(
      ::popen(fmt::format("timeout 5 {} 2>/dev/null </dev/null", command).c_str(), "re"), ::pclose);
  std::array<char, 512> line{};
  if (!pipe || std::fgets(line.data(), static_cast<int>(line.size()), pipe.get()) == nullptr) {
    return {};
  }
  std::string text(line.data());
  text.erase(std::min(text.find('\n'), text.size()));
  return text;
}

}  // namespace tutti::cli
