#include "cli/beside.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>

#include "cli/parse.h"
#include "tutti/base/environment.h"

namespace tutti::cli {

Result<std::string> find_beside(const std::string& name) {
  std::error_code error;
  const auto tool = std::filesystem::read_symlink("/proc/self/exe", error);
  for (const auto& candidate :
       {tool.parent_path() / name, tool.parent_path().parent_path() / "libexec" / "tutti" / name}) {
    if (std::filesystem::exists(candidate, error)) {
      return candidate.string();
    }
  }
  return Error{Code::not_found, fmt::format("the program that this needs, {}, is not beside {}: build or install it "
                                            "(it needs LibTorch)",
                                            name, tool.string())};
}

int become(const std::string& name, std::vector<std::string> command) {
  std::vector<char*> words;
  std::transform(command.begin(), command.end(), std::back_inserter(words),
                 [](std::string& word) { return word.data(); });
  words.push_back(nullptr);
  ::execv(words[0], words.data());
  return complain(name, fmt::format("cannot run {}: {}", command[0], std::strerror(errno)));
}

bool is_rank() {
  const auto environment = read_environment();
  return environment && environment.value().launcher != Launcher::none;
}

}  // namespace tutti::cli
