#include "tutti/plan/known_network.h"

#include <cctype>
#include <filesystem>

namespace tutti::plan {

std::string network_file(const std::string& tuning_file, std::string_view machine, bool several_hosts) {
  if (tuning_file.empty()) {
    return "";
  }
  std::string name;
  for (const unsigned char letter : machine) {
    if (std::isalnum(letter) != 0) {
      name += static_cast<char>(letter);
    } else if (!name.empty() && name.back() != '-') {
      name += '-';
    }
  }
  const auto folder = std::filesystem::path(tuning_file).parent_path() / "networks";
  return folder / (name + (several_hosts ? "-hosts.json" : ".json"));
}

}  // namespace tutti::plan
