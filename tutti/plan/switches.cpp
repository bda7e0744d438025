#include "tutti/plan/switches.h"

#include <algorithm>
#include <set>
#include <sstream>

#include <fmt/format.h>

namespace tutti::plan {

Result<Switches> Switches::parse(std::string_view text) {
  Switches switches;
  std::set<std::string> seen;
  std::istringstream lines{std::string(text)};
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    const auto bad = [&](const std::string& what) {
      return Error{Code::invalid_argument, fmt::format("line {}: {}", number, what)};
    };
    line.resize(std::min(line.size(), line.find('#')));
    if (line.find_first_not_of(" \t\r") == std::string::npos) {
      continue;
    }
    const auto colon = line.find(':');
    if (colon == std::string::npos) {
      return bad("a line is 'SWITCH: HOST HOST ...'");
    }
    std::istringstream names(line.substr(colon + 1));
    auto& hosts = switches.switches_.emplace_back();
    for (std::string host; names >> host;) {
      if (!seen.insert(host).second) {
        return bad(fmt::format("host {} is at two switches", host));
      }
      hosts.push_back(host);
    }
    if (hosts.empty()) {
      return bad("a switch without hosts");
    }
  }
  return switches;
}

std::size_t Switches::of(std::string_view host) const {
  const auto found = std::find_if(switches_.begin(), switches_.end(), [&](const auto& hosts) {
    return std::find(hosts.begin(), hosts.end(), host) != hosts.end();
  });
  return static_cast<std::size_t>(found - switches_.begin());
}

}  // namespace tutti::plan
