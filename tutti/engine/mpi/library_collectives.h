#pragma once

#include <vector>

#include "tutti/engine/mpi/mpi_links.h"

namespace tutti::engine::mpi {

/// MPI's own collectives, for calls that it has a name for. One thread at a time.
class LibraryCollectives {
 public:
  explicit LibraryCollectives(const Wires& wires);

  /// Whether it can be chosen for such an operation.
  static bool has(Op op);

  /// Whether MPI has that operation, for that type, and counts so high.
  static bool can(const Call& call, const Card& card);

  /// All ranks of the group call it, and agree. Blocks.
  Status run(const Call& call, const Doing& doing, Deadline deadline);

 private:
  int begin(const Call& call, const Card& card);

  const Wires& wires_;
  const std::unique_ptr<Requests> requests_;
  std::vector<Rank> others_;  // any of them may be the one that is waited for
};

}  // namespace tutti::engine::mpi
