#include "tutti/comm/mpi_meeting.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <sstream>

#include <fmt/format.h>
#include <openssl/crypto.h>

#include "tutti/comm/host.h"
#include "tutti/rendezvous/client.h"

namespace tutti {
namespace {

using rendezvous::Address;
using rendezvous::Secret;

/// What rank 0 broadcasts. Plain data of one length, so that one message will do.
struct Invitation {
  std::array<std::uint8_t, Secret::kBytes> secret{};
  std::uint32_t code = 0;         ///< 0, or a Code + 1: rank 0 failed, and `text` says why
  std::array<char, 4000> text{};  ///< host identity, then addresses, a line each

  ~Invitation() { OPENSSL_cleanse(secret.data(), secret.size()); }
};

/// By which other hosts may reach this one.
std::vector<std::string> own_addresses() {
  std::vector<std::string> found;
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) {
    return found;
  }
  for (const auto* each = all; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr || (each->ifa_flags & IFF_UP) == 0 || (each->ifa_flags & IFF_LOOPBACK) != 0 ||
        each->ifa_addr->sa_family != AF_INET) {
      continue;
    }
    std::array<char, INET_ADDRSTRLEN> text{};
    const auto* address = reinterpret_cast<const sockaddr_in*>(each->ifa_addr);
    if (::inet_ntop(AF_INET, &address->sin_addr, text.data(), text.size()) != nullptr) {
      found.emplace_back(text.data());
    }
  }
  ::freeifaddrs(all);
  return found;
}

/// On rank 0: serves the store, and writes down where.
Result<std::unique_ptr<rendezvous::Server>> serve(const Environment& environment, int world_size,
                                                  Invitation& invitation) {
  const auto secret = Secret::make();
  if (!secret) {
    return secret.error();
  }
  std::vector<Address> listen{Address::random_unix()};
  for (const auto& host : own_addresses()) {
    listen.push_back({.kind = Address::Kind::tcp, .name = host, .port = 0});
  }
  auto server = rendezvous::Server::start({.world_size = world_size,
                                           .listen = listen,
                                           .secret = secret.value(),
                                           .close_when_complete = true,
                                           .log = make_log("tutti", environment.log_level)});
  if (!server) {
    return server.error();
  }
  std::string text = host_identity() + "\n";
  for (const auto& address : server.value()->addresses()) {
    text += address.text() + "\n";
  }
  invitation.secret = secret.value().bytes();
  std::copy_n(text.begin(), std::min(text.size(), invitation.text.size() - 1), invitation.text.begin());
  return server;
}

/// The first that lets this rank in. Which of another host's networks leads here, only trying tells.
Result<std::shared_ptr<rendezvous::Store>> join_any(const Invitation& invitation, const Place& place,
                                                    Deadline deadline) {
  std::istringstream lines(invitation.text.data());
  std::string host;
  std::getline(lines, host);
  std::vector<Address> addresses;
  for (std::string line; std::getline(lines, line);) {
    const auto address = Address::parse(line);
    if (address && (address.value().kind == Address::Kind::unix_name) == (host == host_identity())) {
      addresses.push_back(address.value());
    }
  }
  Error last{Code::not_found, "rank 0's host has no network by which other hosts could reach its store"};
  constexpr std::chrono::seconds kTry{3};
  while (!addresses.empty()) {
    for (const auto& address : addresses) {
      const auto slice = Deadline::after(std::min<Deadline::Clock::duration>(deadline.remaining(), kTry));
      auto joined = rendezvous::join({.address = address,
                                      .rank = place.rank,
                                      .world_size = place.world_size,
                                      .secret = Secret(invitation.secret),
                                      .served_by = Rank{0}},
                                     addresses.size() == 1 ? deadline : slice);
      if (joined || joined.error().code == Code::refused) {
        return joined;
      }
      last = joined.error();
    }
    if (deadline.expired()) {
      break;
    }
  }
  return last;
}

}  // namespace

Result<Meeting> meet_by_mpi(engine::mpi::Library& library, const Environment& environment, Place& place,
                            Deadline deadline) {
  place.rank = Rank{library.rank()};
  place.world_size = library.size();
  Meeting meeting;
  const auto invitation = std::make_shared<Invitation>();  // outlives a broadcast that does not come back
  if (place.rank == Rank{0}) {
    auto server = serve(environment, place.world_size, *invitation);
    if (server) {
      meeting.server = std::move(server).value();
    } else {
      invitation->code = static_cast<std::uint32_t>(server.error().code) + 1;
      const auto& why = server.error().message;
      std::copy_n(why.begin(), std::min(why.size(), invitation->text.size() - 1), invitation->text.begin());
    }
  }
  auto told = library.block("MPI_Bcast", deadline, [&library, invitation] {
    return library.api().broadcast(library.base(), reinterpret_cast<std::byte*>(invitation.get()), sizeof(Invitation),
                                   0);
  });
  if (!told) {
    return told.error();
  }
  if (invitation->code != 0) {
    return Error{static_cast<Code>(invitation->code - 1),
                 fmt::format("rank 0 could not serve the job's store: {}", invitation->text.data()), Rank{0}};
  }
  auto store = join_any(*invitation, place, deadline);
  if (!store) {
    return store.error();
  }
  meeting.store = std::move(store).value();
  const auto met = exchange_hosts(*meeting.store, "tutti/place", place.rank, place.world_size, deadline);
  if (!met) {
    return met.error();
  }
  const auto& hosts = met.value().names;
  place.local_rank = place.local_world_size = 0;
  for (int rank = 0; rank < place.world_size; ++rank) {
    if (hosts[static_cast<std::size_t>(rank)] == hosts[to_index(place.rank)]) {
      place.local_rank += rank < to_int(place.rank) ? 1 : 0;
      ++place.local_world_size;
    }
  }
  return meeting;
}

}  // namespace tutti
