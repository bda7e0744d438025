#include "cli/hosts.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include <fmt/format.h>

namespace tutti::cli {
namespace {

Error bad(std::string message) { return {.code = Code::invalid_argument, .message = std::move(message)}; }

std::string_view trim(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r");
  return first == std::string_view::npos ? std::string_view()
                                         : text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

bool usable_name(std::string_view name) {
  return !name.empty() && name.front() != '-' && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '.' || c == '-' || c == '_' || c == '@' || c == ':' || c == '%';
  });
}

Status add_host(std::vector<Host>& hosts, std::string_view name, std::string_view count) {
  if (!usable_name(name)) {
    return bad(fmt::format("'{}' is no host name", name));
  }
  const auto ranks = parse_rank_count(count);
  if (!ranks) {
    return bad(fmt::format("host '{}': {}", name, ranks.error().message));
  }
  if (std::any_of(hosts.begin(), hosts.end(), [&](const Host& host) { return host.name == name; })) {
    return bad(fmt::format("host '{}' is listed twice: give it once, with all its ranks", name));
  }
  hosts.push_back({std::string(name), ranks.value()});
  return {};
}

/// "a", "a:2", "[::1]:2"
Status add_entry(std::vector<Host>& hosts, std::string_view entry) {
  if (!entry.empty() && entry.front() == '[') {
    const auto close = entry.find(']');
    if (close == std::string_view::npos || (close + 1 < entry.size() && entry[close + 1] != ':')) {
      return bad(fmt::format("'{}': an address in brackets is followed by ':' and a number of ranks", entry));
    }
    return add_host(hosts, entry.substr(1, close - 1), close + 1 < entry.size() ? entry.substr(close + 2) : "1");
  }
  const auto colon = entry.find(':');
  if (colon != std::string_view::npos && entry.find(':', colon + 1) != std::string_view::npos) {
    return bad(fmt::format("'{}': an IPv6 address stands in brackets", entry));
  }
  return add_host(hosts, entry.substr(0, colon), colon == std::string_view::npos ? "1" : entry.substr(colon + 1));
}

Result<std::vector<Host>> checked(std::vector<Host> hosts) {
  long total = 0;
  for (const Host& host : hosts) {
    total += host.ranks;
  }
  if (hosts.empty()) {
    return bad("the list of hosts is empty");
  }
  if (total > kMostRanks) {
    return bad(fmt::format("the hosts have {} ranks together; {} is the most", total, kMostRanks));
  }
  return hosts;
}

}  // namespace

Result<int> parse_rank_count(std::string_view text) {
  int count = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, count);
  if (text.empty() || stop != end || error == std::errc::invalid_argument) {
    return bad(fmt::format("'{}' is no number of ranks", text));
  }
  if (error == std::errc::result_out_of_range || count < 1 || count > kMostRanks) {
    return bad(fmt::format("cannot run {} ranks: the number must be from 1 to {}", text, kMostRanks));
  }
  return count;
}

Result<std::vector<Host>> parse_hosts(std::string_view text) {
  std::vector<Host> hosts;
  for (std::size_t start = 0; start <= text.size();) {
    const auto comma = std::min(text.find(',', start), text.size());
    if (const Status added = add_entry(hosts, trim(text.substr(start, comma - start))); !added) {
      return added.error();
    }
    start = comma + 1;
  }
  return checked(std::move(hosts));
}

Result<std::vector<Host>> parse_host_file(std::string_view text) {
  std::vector<Host> hosts;
  for (std::size_t start = 0; start < text.size();) {
    const auto newline = std::min(text.find('\n', start), text.size());
    std::string_view line = text.substr(start, newline - start);
    start = newline + 1;
    line = trim(line.substr(0, line.find('#')));
    if (line.empty()) {
      continue;
    }
    const auto space = line.find_first_of(" \t");
    Status added;
    if (space == std::string_view::npos) {
      added = add_entry(hosts, line);
    } else {
      const std::string_view rest = trim(line.substr(space));
      constexpr std::string_view kSlots = "slots=";
      added = rest.starts_with(kSlots)
                  ? add_host(hosts, line.substr(0, space), rest.substr(kSlots.size()))
                  : Status(bad(fmt::format("'{}': expected HOST:RANKS or HOST slots=RANKS", line)));
    }
    if (!added) {
      return added.error();
    }
  }
  return checked(std::move(hosts));
}

Result<std::vector<std::string>> split_command(std::string_view text) {
  std::vector<std::string> words;
  bool in_word = false;
  char quote = 0;
  for (const char c : text) {
    if (quote != 0) {
      if (c == quote) {
        quote = 0;
      } else {
        words.back() += c;
      }
    } else if (c == ' ' || c == '\t') {
      in_word = false;
    } else {
      if (!in_word) {
        words.emplace_back();
        in_word = true;
      }
      if (c == '\'' || c == '"') {
        quote = c;
      } else {
        words.back() += c;
      }
    }
  }
  if (quote != 0) {
    return bad(fmt::format("a quote in '{}' does not end", text));
  }
  return words;
}

std::string shell_quoted(std::string_view word) {
  const bool plain = !word.empty() && std::all_of(word.begin(), word.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || std::string_view("_-./=:,+@%").find(static_cast<char>(c)) != std::string_view::npos;
  });
  if (plain) {
    return std::string(word);
  }
  std::string quoted = "'";
  for (const char c : word) {
    quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  }
  return quoted + "'";
}

}  // namespace tutti::cli
