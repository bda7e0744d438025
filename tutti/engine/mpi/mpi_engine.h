#pragma once

#include <memory>
#include <string>

#include "tutti/engine/engine.h"
#include "tutti/engine/mpi/library.h"
#include "tutti/engine/mpi/members.h"
#include "tutti/engine/shared_engine.h"
#include "tutti/rendezvous/store.h"

namespace tutti::engine {

/// What a group over several hosts is made of.
struct MpiGroup {
  std::shared_ptr<mpi::Library> library;
  std::shared_ptr<rendezvous::Store> store;
  std::string name;  ///< no other group of the store has or had it
  mpi::Members members;
  Rank rank{0};
};

/// This rank's engine in a group whose ranks share memory on each host, and have MPI between hosts. All members call
/// it; it blocks until all of them are there, or until the deadline.
///
/// A sum goes through shared memory to as many ranks of each host as its smallest has, each of which adds its part with
/// those of the other hosts; small ones travel along with the greetings by which hosts compare what they call.
/// Everything else is run by plans whose steps go through shared memory inside of a host and by MPI between hosts, or
/// by MPI's own collectives, where those were chosen.
Result<std::unique_ptr<Engine>> make_mpi_engine(const MpiGroup& group, Deadline deadline);

}  // namespace tutti::engine
