#include "train/machine.h"

#include <unistd.h>

#include <array>
#include <fstream>
#include <string>

#include <nlohmann/json.hpp>

#include "tutti/memory/cores.h"
#include "tutti/version.h"

namespace tutti::train {
namespace {

/// What follows "key :" in a file of such lines.
std::string value_in(const char* path, std::string_view key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const auto colon = line.find(':');
    if (line.starts_with(key) && colon != line.npos) {
      const auto value = line.find_first_not_of(" \t", colon + 1);
      return value == line.npos ? "" : line.substr(value);
    }
  }
  return "";
}

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

}  // namespace

nlohmann::json describe_machine() {
  return {{"host", host_name()},
          {"processor", value_in("/proc/cpuinfo", "model name")},
          {"cores", memory::Cores::allowed().count()},
          {"tutti", kVersion}};
}

std::int64_t most_resident_bytes() {
  const auto text = value_in("/proc/self/status", "VmHWM");  // "1234 kB"
  return text.empty() ? 0 : std::strtoll(text.c_str(), nullptr, 10) * 1024;
}

}  // namespace tutti::train
