#pragma once

#include <string>
#include <vector>

#include "tutti/base/deadline.h"
#include "tutti/base/environment.h"
#include "tutti/base/error.h"
#include "tutti/base/rank.h"
#include "tutti/rendezvous/store.h"

namespace tutti {

/// What tells this host from others, for the purpose of sharing memory: processes with the same text can.
/// Containers and network namespaces count as hosts of their own.
std::string host_identity();

/// Every rank says where it is and learns where the others are. `prefix` is used once per store.
Result<std::vector<std::string>> exchange_hosts(rendezvous::Store& store, const std::string& prefix, Rank rank,
                                                int ranks, Deadline deadline);

/// How MPI finds a rank, or why it has none.
struct Whereabouts {
  std::string job = {};      ///< what tells MPI's worlds apart
  int address = 0;           ///< its rank there
  Rank in_world{-1};         ///< its rank in the job
  std::string trouble = {};  ///< a sentence; empty when there is none
};

/// The same for these.
Result<std::vector<Whereabouts>> exchange_whereabouts(rendezvous::Store& store, const std::string& prefix, Rank rank,
                                                      int ranks, const Whereabouts& mine, Deadline deadline);

/// A text that all ranks of one job on this host come to by themselves, and no other job does: for meeting without a
/// launcher of ours. From MASTER_ADDR and MASTER_PORT where they are set, else from the launcher's process.
Result<std::string> job_identity(const Environment& environment);

}  // namespace tutti
