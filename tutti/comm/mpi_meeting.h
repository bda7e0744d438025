#pragma once

#include <memory>

#include "tutti/base/deadline.h"
#include "tutti/base/environment.h"
#include "tutti/base/error.h"
#include "tutti/engine/mpi/library.h"
#include "tutti/rendezvous/server.h"
#include "tutti/rendezvous/store.h"

namespace tutti {

/// A job's store, joined, and on rank 0 its server, which goes after it.
struct Meeting {
  std::unique_ptr<rendezvous::Server> server;
  std::shared_ptr<rendezvous::Store> store;
};

/// How ranks that know each other by MPI alone find a store: rank 0 serves it, and tells the others by MPI where it is
/// and what the job's secret is. `place` becomes that of MPI's numbers. All ranks of the library's world call it.
Result<Meeting> meet_by_mpi(engine::mpi::Library& library, const Environment& environment, Place& place,
                            Deadline deadline);

}  // namespace tutti
