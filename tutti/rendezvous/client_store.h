#pragma once

#include <memory>
#include <optional>
#include <string>

#include "tutti/base/file_descriptor.h"
#include "tutti/base/rank.h"
#include "tutti/rendezvous/store.h"
#include "tutti/rendezvous/transport.h"

namespace tutti::rendezvous {

/// A connection on which the server has let us in.
struct Joined {
  FileDescriptor socket;
  std::unique_ptr<Transport> transport;
  // For messages:
  std::string address;
  std::optional<Rank> served_by = std::nullopt;  ///< nullopt: not by a rank
};

/// A store at the other end of a connection. Calls of any number of threads share it; there is no thread of its own:
/// one of those who wait reads for all.
Result<std::shared_ptr<Store>> make_client_store(Joined joined);

}  // namespace tutti::rendezvous
