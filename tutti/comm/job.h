#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "tutti/base/environment.h"
#include "tutti/base/rank.h"
#include "tutti/rendezvous/store.h"

namespace tutti {

/// What would otherwise come from the environment; see docs/environment.md.
struct InitOptions {
  std::optional<Rank> rank = std::nullopt;
  std::optional<int> world_size = std::nullopt;
  std::string store = "";        ///< "unix:NAME" or "tcp:HOST:PORT"; rank 0 serves it when no launcher does
  std::string secret_file = "";  ///< needed with tcp
  std::optional<std::chrono::milliseconds> timeout = std::nullopt;  ///< for joining, and default for operations
  /// The bits of the program's own MPI communicator, whose ranks the world is made of: see tutti/mpi.h.
  std::optional<std::uint64_t> communicator = std::nullopt;
};

/// A rank's way into its job.
struct Job {
  Environment environment;
  std::shared_ptr<rendezvous::Store> store;  ///< also owns the server, where this rank runs it
  bool alone = false;                        ///< nobody else is in it, and nobody was asked
};

/// Finds the job that this process was started for and joins it. Blocks until let in; throws tutti::Exception.
Job join_job(const InitOptions& options);

}  // namespace tutti
