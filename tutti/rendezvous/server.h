#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tutti/base/deadline.h"
#include "tutti/base/error.h"
#include "tutti/base/log.h"
#include "tutti/base/rank.h"
#include "tutti/rendezvous/address.h"
#include "tutti/rendezvous/secret.h"

namespace tutti::rendezvous {

struct ServerOptions {
  int world_size = 1;
  std::vector<Address> listen;  ///< any number of unix and tcp addresses; port 0 takes a free one
  Secret secret;                ///< tcp peers must hold it; unix peers must be the same user
  /// Stop listening once all ranks are in. For an address that others could derive, so that a later job can have it.
  bool close_when_complete = false;
  std::chrono::milliseconds handshake_timeout = std::chrono::seconds(10);
  std::size_t max_strangers = 4096;  ///< connections not yet let in; the oldest goes when one more comes
  Log log = silent_log();
};

/// What strangers and members cost, for tests and for `tutti doctor`.
struct ServerCounters {
  std::uint64_t accepted = 0;
  std::uint64_t rejected = 0;      ///< wrong secret, user, version, rank, world size
  std::uint64_t strangers = 0;     ///< connected now and not let in
  std::uint64_t members = 0;       ///< connected now and let in
  std::size_t stranger_bytes = 0;  ///< the most memory that one stranger can cost, beside its socket
};

/// The job's store and its door. One thread of its own; made by the launcher, or by rank 0 where there is none.
///
/// Who is let in: over a unix name the same user (kernel credentials), over tcp who proves to hold the secret, first by
/// a fixed-size keyed answer to a fresh challenge, then by TLS 1.3 with the secret as pre-shared key. Then a hello with
/// rank, world size and version; a rank that is already here, another world size or another version is told so.
///
/// When a member leaves with a goodbye, its number is free for the same job's next world (a program may init again).
/// The n-th world of one rank is the n-th of the others; worlds do not see each other's keys, and one that all have
/// left is forgotten: who comes later comes to the next. When a member's connection breaks without one, the rank is
/// lost: every waiting and later call of the others fails with Code::peer_lost naming it.
class Server {
 public:
  static Result<std::unique_ptr<Server>> start(ServerOptions options);
  virtual ~Server() = default;

  /// Where it listens, with the ports it got.
  virtual std::vector<Address> addresses() const = 0;
  virtual ServerCounters counters() const = 0;

  /// Whether a rank was ever let in.
  virtual bool has_joined(Rank rank) const = 0;

  /// When a rank that had been let in left, or was lost. Nullopt while it is in, and when it never was.
  virtual std::optional<Deadline::Clock::time_point> left_at(Rank rank) const = 0;

  /// Tells all members that a rank failed: their waiting and later calls end with Code::peer_lost and `sentence`.
  virtual void declare_lost(Rank rank, const std::string& sentence) = 0;
};

}  // namespace tutti::rendezvous
