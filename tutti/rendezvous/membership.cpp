#include "tutti/rendezvous/membership.h"

#include <algorithm>

#include <fmt/format.h>

namespace tutti::rendezvous {
namespace {

Error refused(std::string sentence) { return {.code = Code::refused, .message = std::move(sentence)}; }

/// Text from a peer as a sentence may show it.
std::string printable(std::string_view text) {
  std::string clean;
  for (const char c : text.substr(0, 255)) {
    clean += (c >= ' ' && c <= '~') ? c : '?';
  }
  return clean;
}

Generation after(Generation generation) { return Generation{static_cast<std::uint64_t>(generation) + 1}; }

}  // namespace

std::string describe(const Hello& hello) { return fmt::format("pid {} on host {}", hello.pid, printable(hello.host)); }

std::optional<Error> Membership::objection(const Hello& hello) const {
  const int rank = to_int(hello.rank);
  if (hello.protocol != kProtocol || hello.version != version_) {
    return refused(fmt::format("rank {} ({}) runs Tutti {} (protocol {}); this job runs {} (protocol {})", rank,
                               describe(hello), printable(hello.version), hello.protocol, version_, kProtocol));
  }
  if (hello.world_size != world_size_) {
    return refused(fmt::format("rank {} ({}) says the world has {} ranks; this job has {}", rank, describe(hello),
                               hello.world_size, world_size_));
  }
  if (rank < 0 || rank >= world_size_) {
    return refused(
        fmt::format("{} says it is rank {}; this job has ranks 0 to {}", describe(hello), rank, world_size_ - 1));
  }
  for (const auto& [generation, world] : worlds_) {
    if (const auto twin = world.present.find(hello.rank); twin != world.present.end()) {
      return refused(fmt::format("rank {} is already here ({}); {} says it is rank {} too", rank,
                                 describe(twin->second), describe(hello), rank));
    }
  }
  return std::nullopt;
}

Generation Membership::next_of(Rank rank) const {
  const auto found = next_.find(rank);
  return found == next_.end() ? open_ : std::max(open_, found->second);
}

Result<Generation> Membership::admit(const Hello& hello) {
  if (auto error = objection(hello)) {
    return *error;
  }
  const auto generation = next_of(hello.rank);
  auto& world = worlds_[generation];
  world.present.emplace(hello.rank, hello);
  ++world.came;
  next_[hello.rank] = after(generation);
  return generation;
}

bool Membership::remove(Generation generation, Rank rank) {
  const auto found = worlds_.find(generation);
  require(found != worlds_.end() && found->second.present.erase(rank) == 1, "who leaves was a member");
  if (!found->second.present.empty()) {
    return false;
  }
  worlds_.erase(found);
  open_ = std::max(open_, after(generation));
  return true;
}

bool Membership::leave(Generation generation, Rank rank) { return remove(generation, rank); }

bool Membership::lose(Generation generation, Rank rank) {
  auto& world = worlds_.at(generation);
  if (!world.failure) {
    world.failure =
        Error{.code = Code::peer_lost,
              .message = fmt::format("rank {} ({}) is lost: its connection to the store broke without a goodbye",
                                     to_int(rank), describe(world.present.at(rank))),
              .rank = rank};
  }
  return remove(generation, rank);
}

void Membership::declare_lost(Rank rank, const std::string& sentence) {
  worlds_[next_of(rank)];  // it may have died before it came: who waits for it there must hear of it
  for (auto& [generation, world] : worlds_) {
    // Who failed first stays the one to blame; of that one this may be the better account.
    if (!world.failure || world.failure->rank == rank) {
      world.failure = Error{.code = Code::peer_lost, .message = sentence, .rank = rank};
    }
  }
}

const Error* Membership::failure(Generation generation) const {
  const auto found = worlds_.find(generation);
  return found == worlds_.end() || !found->second.failure ? nullptr : &*found->second.failure;
}

bool Membership::complete(Generation generation) const {
  const auto found = worlds_.find(generation);
  return found != worlds_.end() && found->second.came == world_size_;
}

}  // namespace tutti::rendezvous
