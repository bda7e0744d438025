#pragma once

#include <memory>
#include <string>

#include "tutti/base/deadline.h"
#include "tutti/base/error.h"
#include "tutti/base/rank.h"
#include "tutti/engine/shared_engine.h"
#include "tutti/rendezvous/store.h"

namespace tutti::engine {

/// This rank's engine in a group of processes of one host. All members call it with the same group name, which no
/// other group of the store has or had; it blocks until all of them are there, or until the deadline.
/// Rank 0 makes the memory and hands it to the others over a unix socket that it announces in the store.
Result<std::unique_ptr<SharedEngine>> make_shm_engine(rendezvous::Store& store, const std::string& group, Rank rank,
                                                      int ranks, Deadline deadline);

}  // namespace tutti::engine
