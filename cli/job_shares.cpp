#include "cli/job_shares.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>

#include <fmt/format.h>

namespace tutti::cli {
namespace {

struct AddressesFree {
  void operator()(addrinfo* addresses) const { ::freeaddrinfo(addresses); }
};

bool is_loopback(const sockaddr* address) {
  if (address->sa_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(address);
    return ntohl(v4->sin_addr.s_addr) >> 24 == 127;
  }
  const auto* v6 = reinterpret_cast<const sockaddr_in6*>(address);
  return address->sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
}

/// Debian's /etc/hosts gives a machine's own name a loopback address.
bool leads_to_loopback(const std::string& name) {
  addrinfo* raw = nullptr;
  if (::getaddrinfo(name.c_str(), nullptr, nullptr, &raw) != 0) {
    return false;
  }
  const std::unique_ptr<addrinfo, AddressesFree> addresses(raw);
  return is_loopback(addresses->ai_addr);
}

std::string without_user(const std::string& name) {
  const auto at = name.find('@');
  return at == std::string::npos ? name : name.substr(at + 1);
}

/// The host of rank 0, as other hosts see it: where programs that make a store of their own expect it.
std::string master_host(const RunOptions& options, const JobPlace& place) {
  if (options.hosts.empty()) {
    return "127.0.0.1";
  }
  const std::string first = without_user(options.hosts.front().name);
  return is_localhost(first) ? place.store_host : first;
}

std::vector<std::pair<std::string, std::string>> own_variables(const std::vector<std::string>& base) {
  std::vector<std::pair<std::string, std::string>> variables;
  for (const std::string& entry : base) {
    const auto equals = entry.find('=');
    if (entry.starts_with("TUTTI_") && !entry.starts_with("TUTTI_SECRET") && equals != std::string::npos) {
      variables.emplace_back(entry.substr(0, equals), entry.substr(equals + 1));
    }
  }
  return variables;
}

}  // namespace

bool is_localhost(const std::string& name) {
  const std::string host = without_user(name);
  return host == "localhost" || host == "127.0.0.1" || host == "::1";
}

std::vector<Share> make_shares(const RunOptions& options, const JobPlace& place) {
  Share common{.command = options.command, .variables = {}, .world_size = options.world_size, .bind = options.bind};
  if (!options.hosts.empty()) {
    common.variables = own_variables(place.base);
    common.directory = place.directory;
  }
  common.variables.emplace_back("MASTER_ADDR", master_host(options, place));
  common.variables.emplace_back("MASTER_PORT", std::to_string(place.port));
  common.variables.insert(common.variables.end(), options.variables.begin(), options.variables.end());
  common.variables.emplace_back("TUTTI_STORE", place.store);
  if (options.hosts.empty()) {
    common.count = options.world_size;
    return {common};
  }
  std::vector<Share> shares;
  int first = 0;
  for (const Host& host : options.hosts) {
    Share share = common;
    share.first = Rank{first};
    share.count = host.ranks;
    first += host.ranks;
    shares.push_back(std::move(share));
  }
  return shares;
}

Result<std::string> store_host(const RunOptions& options) {
  if (!options.address.empty()) {
    return options.address;
  }
  if (std::all_of(options.hosts.begin(), options.hosts.end(),
                  [](const Host& host) { return is_localhost(host.name); })) {
    return std::string("127.0.0.1");
  }
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) {
    return system_error("cannot tell this host's name", errno);
  }
  if (leads_to_loopback(name.data())) {
    return Error{.code = Code::invalid_argument,
                 .message = fmt::format("this host's name, {}, leads to a loopback address that other hosts cannot "
                                        "reach: give --address",
                                        name.data())};
  }
  return std::string(name.data());
}

Result<std::vector<std::string>> agent_command(const RunOptions& options, const Host& host,
                                               const std::string& own_path) {
  const std::string tool = options.remote_tutti.empty() ? own_path : options.remote_tutti;
  if (options.launch_agent.empty()) {
    if (!is_localhost(host.name)) {
      return Error{.code = Code::invalid_argument,
                   .message = fmt::format("host '{}' needs a --launch-agent to be reached", host.name)};
    }
    return std::vector<std::string>{tool, "host-agent"};
  }
  std::vector<std::string> command = options.launch_agent;
  command.insert(command.end(), {host.name, shell_quoted(tool), "host-agent"});
  return command;
}

}  // namespace tutti::cli
