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

/// Where everybody is, by rank, and what rank 0 told all.
struct Hosts {
  std::vector<std::string> names;
  std::string told;
};

/// Every rank says where it is and learns where the others are. `prefix` is used once per store. `tell`: what rank 0
/// has to say to all; others' are not heard.
Result<Hosts> exchange_hosts(rendezvous::Store& store, const std::string& prefix, Rank rank, int ranks,
                             Deadline deadline, const std::string& tell = {});

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
