#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tutti/base/error.h"

namespace tutti::cli {

/// A host and how many ranks it runs.
struct Host {
  std::string name;
  int ranks = 1;
  bool operator==(const Host&) const = default;
};

/// The most ranks that a job may have.
inline constexpr int kMostRanks = 65536;

/// A count of ranks from text; fails with a sentence on anything that is not a number from 1 to kMostRanks.
Result<int> parse_rank_count(std::string_view text);

/// "a:2,b:2" -> two hosts; without a number a host has one rank. An IPv6 address stands in brackets. Fails on an empty
/// or unusable name (one that a launch agent could take for an option), a bad count, or a host that is listed twice.
Result<std::vector<Host>> parse_hosts(std::string_view text);

/// A host file: one host per line, "a:2" or "a slots=2"; empty lines and what follows '#' do not count.
Result<std::vector<Host>> parse_host_file(std::string_view text);

/// Splits a command line at spaces; quotes, single or double, hold words together. Fails on one that does not end.
Result<std::vector<std::string>> split_command(std::string_view text);

/// The word as a shell would have to read it; unchanged where it has no character that means something there.
std::string shell_quoted(std::string_view word);

}  // namespace tutti::cli
