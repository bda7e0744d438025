#pragma once

#include <memory>
#include <optional>

#include "tutti/base/deadline.h"
#include "tutti/base/error.h"
#include "tutti/base/rank.h"
#include "tutti/rendezvous/address.h"
#include "tutti/rendezvous/local_store.h"
#include "tutti/rendezvous/secret.h"
#include "tutti/rendezvous/store.h"

namespace tutti::rendezvous {

struct ClientOptions {
  Address address;
  Rank rank{0};
  int world_size = 1;
  std::optional<Secret> secret;  ///< needed for tcp
  /// Whether a server that is not there yet is waited for (rank 0 may still be starting) or is an error at once.
  bool wait_for_server = true;
  /// The rank whose process runs the server, where no launcher does: when the store goes away, it is the one to name.
  std::optional<Rank> served_by = std::nullopt;
};

/// Joins the job at `options.address` as a rank. Blocks until let in, or until the deadline.
/// Code::refused with the server's sentence when it says no; Code::timed_out naming the address when nobody answers.
/// The store says goodbye when it is destroyed. After fork() the child must not use it: its calls fail, saying so.
Result<std::shared_ptr<Store>> join(const ClientOptions& options, Deadline deadline);

}  // namespace tutti::rendezvous
