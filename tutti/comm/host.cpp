#include "tutti/comm/host.h"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tutti/plan/switches.h"

namespace tutti {
namespace {

std::string read_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

/// Parent and start time of a process; the time tells it from a later one with the same number.
struct ProcessFacts {
  pid_t parent = 0;
  std::string started;
};

ProcessFacts facts_of(pid_t pid) {
  const auto line = read_line(fmt::format("/proc/{}/stat", pid));
  // The name in parentheses may hold anything: fields are counted after the last one.
  std::istringstream fields(line.substr(std::min(line.size(), line.rfind(')') + 2)));
  ProcessFacts facts;
  std::string field;
  for (int number = 3; fields >> field; ++number) {
    if (number == 4) {
      facts.parent = static_cast<pid_t>(std::strtol(field.c_str(), nullptr, 10));
    } else if (number == 22) {
      facts.started = field;
    }
  }
  return facts;
}

bool has_variable(pid_t pid, const std::string& name) {
  std::ifstream file(fmt::format("/proc/{}/environ", pid), std::ios::binary);
  std::string entry;
  while (std::getline(file, entry, '\0')) {
    if (entry.starts_with(name + "=")) {
      return true;
    }
  }
  return false;
}

}  // namespace

std::string host_identity() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  struct stat network {};
  ::stat("/proc/self/ns/net", &network);  // unix names are told apart by it
  return fmt::format("{} {} {}", name.data(), read_line("/proc/sys/kernel/random/boot_id"), network.st_ino);
}

namespace {

/// Everybody's text to everybody.
Result<std::vector<std::string>> exchange(rendezvous::Store& store, const std::string& prefix, Rank rank, int ranks,
                                          const std::string& mine, Deadline deadline) {
  std::vector<std::string> keys;
  for (int peer = 0; peer < ranks; ++peer) {
    keys.push_back(fmt::format("{}/{}", prefix, peer));
  }
  if (auto told = store.set(keys[to_index(rank)], mine, deadline); !told) {
    return told.error();
  }
  auto hosts = store.get_all(keys, deadline);
  if (hosts || hosts.error().code != Code::timed_out) {
    return hosts;
  }
  std::vector<int> missing;
  for (int peer = 0; peer < ranks; ++peer) {
    if (!store.get(keys[static_cast<std::size_t>(peer)], Deadline::after(std::chrono::milliseconds(0)))) {
      missing.push_back(peer);
    }
  }
  if (missing.empty()) {
    return Error{Code::timed_out, "the deadline passed while the ranks of the group met: give it a longer time-out"};
  }
  return Error{Code::timed_out,
               fmt::format("the deadline passed; still missing: rank{} {}", missing.size() == 1 ? "" : "s",
                           fmt::join(missing, ", ")),
               Rank{missing.front()}};
}

}  // namespace

// "HOST", or "HOST\nTOLD".
Result<Hosts> exchange_hosts(rendezvous::Store& store, const std::string& prefix, Rank rank, int ranks,
                             Deadline deadline, const std::string& tell) {
  const auto mine = host_identity() + (rank == Rank{0} && !tell.empty() ? "\n" + tell : "");
  auto texts = exchange(store, prefix, rank, ranks, mine, deadline);
  if (!texts) {
    return texts.error();
  }
  Hosts met{.names = std::move(texts).value(), .told = {}};
  if (auto& first = met.names[0]; first.find('\n') != std::string::npos) {
    met.told = first.substr(first.find('\n') + 1);
    first.resize(first.find('\n'));
  }
  return met;
}

Result<std::size_t> read_switch(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) {
    return Error{Code::not_found, fmt::format("TUTTI_SWITCHES={}: cannot be read", path)};
  }
  const auto switches = plan::Switches::parse(text.str());
  if (!switches) {
    return Error{switches.error().code, fmt::format("TUTTI_SWITCHES={}: {}", path, switches.error().message)};
  }
  const auto host = host_identity();
  return switches.value().of(host.substr(0, host.find(' ')));
}

// "JOB ADDRESS RANK SWITCH", or "- - - SENTENCE".
Result<std::vector<Whereabouts>> exchange_whereabouts(rendezvous::Store& store, const std::string& prefix, Rank rank,
                                                      int ranks, const Whereabouts& mine, Deadline deadline) {
  const auto text = mine.trouble.empty()
                        ? fmt::format("{} {} {} {}", mine.job, mine.address, to_int(mine.in_world), mine.at_switch)
                        : fmt::format("- - - {}", mine.trouble);
  const auto texts = exchange(store, prefix, rank, ranks, text, deadline);
  if (!texts) {
    return texts.error();
  }
  std::vector<Whereabouts> all;
  for (const auto& each : texts.value()) {
    Whereabouts theirs;
    if (each.starts_with("- - - ")) {
      theirs.trouble = each.substr(6);
    } else {
      int in_world = -1;
      std::istringstream(each) >> theirs.job >> theirs.address >> in_world >> theirs.at_switch;
      theirs.in_world = Rank{in_world};
    }
    all.push_back(theirs);
  }
  return all;
}

Result<std::string> job_identity(const Environment& environment) {
  if (environment.master_port != 0) {
    return fmt::format("{}:{} {}", environment.master_address, environment.master_port, environment.job);
  }
  if (environment.launcher == Launcher::torchrun) {
    return Error{
        Code::invalid_argument,
        "RANK is set and MASTER_PORT is not: set MASTER_ADDR and MASTER_PORT too, as torchrun does, or start the "
        "program with `tutti run`"};
  }
  // The nearest ancestor that is not itself inside a rank: a rank may stand behind a wrapper script.
  auto facts = facts_of(::getpid());
  auto launcher = facts.parent;
  while (launcher > 1 && has_variable(launcher, environment.rank_variable)) {
    launcher = facts_of(launcher).parent;
  }
  return fmt::format("{} {} {}", launcher, facts_of(launcher).started, environment.job);
}

}  // namespace tutti
