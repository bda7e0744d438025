#include "cli/parse.h"

#include <algorithm>
#include <charconv>
#include <cstdio>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

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
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string unit(end, text.data() + text.size());
  const std::vector<std::pair<std::string, double>> units{
      {"", 1}, {"B", 1}, {"Ki", 1024.0}, {"Mi", 1048576.0}, {"Gi", 1073741824.0}};
  const auto found = std::find_if(units.begin(), units.end(),
                                  [&](const auto& known) { return unit == known.first || unit == known.first + "B"; });
  constexpr double kMost = 1e15;
  if (error != std::errc() || found == units.end() || !(value * found->second >= 1) || value * found->second > kMost) {
    return Error{Code::invalid_argument, fmt::format("{} {}: a size such as 4096, 64Ki, 25Mi or 1Gi", option, text)};
  }
  return static_cast<std::size_t>(value * found->second);
}

}  // namespace tutti::cli
