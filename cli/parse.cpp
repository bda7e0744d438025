#include "cli/parse.h"

#include <cstdio>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "tutti/base/bytes.h"

namespace tutti::cli {

int complain(const std::string& command, const std::string& sentence) {
  // Some parser messages have a second line; an error is one.
  // Not fmt::print, which throws when standard error takes nothing: the exit code still tells.
  std::fputs(fmt::format("{}: {}\n", command, sentence.substr(0, sentence.find('\n'))).c_str(), stderr);
  return kUsageError;
}

int parse(CLI::App& app, const std::string& command, const std::vector<std::string>& arguments) {
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));  // it takes them from the back
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", app.help());
    return 0;
  } catch (const CLI::ParseError& error) {
    return complain(command, fmt::format("{} (see {} --help)", error.what(), command));
  }
  return -1;
}

Result<std::size_t> parse_bytes(const std::string& option, const std::string& text) {
  auto bytes = tutti::parse_bytes(text);
  if (!bytes) {
    return Error{bytes.error().code, fmt::format("{}: {}", option, bytes.error().message)};
  }
  return bytes;
}

}  // namespace tutti::cli
