#include "cli/rank_environment.h"

#include <unistd.h>

#include <algorithm>

#include "cli/child.h"

namespace tutti::cli {
namespace {

bool names(const std::string& entry, const std::string& name) {
  return entry.size() > name.size() && entry[name.size()] == '=' && entry.compare(0, name.size(), name) == 0;
}

void unset(std::vector<std::string>& entries, const std::string& name) {
  std::erase_if(entries, [&](const std::string& entry) { return names(entry, name); });
}

void set(std::vector<std::string>& entries, const std::string& name, const std::string& value) {
  unset(entries, name);
  entries.push_back(name + "=" + value);
}

}  // namespace

std::vector<std::string> rank_environment(const std::vector<std::string>& base, const Share& share, int local_rank,
                                          int cores) {
  std::vector<std::string> entries = base;
  unset(entries, "TUTTI_SECRET_FILE");  // of a job that this one was started from
  for (const auto& [name, value] : share.variables) {
    set(entries, name, value);
  }
  set(entries, "RANK", std::to_string(to_int(share.first) + local_rank));
  set(entries, "WORLD_SIZE", std::to_string(share.world_size));
  set(entries, "LOCAL_RANK", std::to_string(local_rank));
  set(entries, "LOCAL_WORLD_SIZE", std::to_string(share.count));
  set(entries, "TUTTI_SECRET_FD", std::to_string(kSecretDescriptor));
  const bool told = std::any_of(entries.begin(), entries.end(),
                                [](const std::string& entry) { return names(entry, "OMP_NUM_THREADS"); });
  if (!told) {
    set(entries, "OMP_NUM_THREADS", std::to_string(std::max(1, cores / share.count)));
  }
  return entries;
}

std::vector<std::string> own_environment() {
  std::vector<std::string> entries;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    entries.emplace_back(*entry);
  }
  return entries;
}

}  // namespace tutti::cli
