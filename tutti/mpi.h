#pragma once

// For programs that use MPI themselves: include it after, or instead of, tutti/tutti.h.

#include <mpi.h>

#include <cstdint>
#include <cstring>

#include "tutti/tutti.h"

namespace tutti {

/// A world of the ranks of this communicator, which is copied: messages of the program and of Tutti do not meet. All of
/// its ranks call it; each host's share memory, and hosts are joined by MPI. The program has initialized MPI before,
/// and ends it after the world and its groups are gone. Where it asked for less than MPI_THREAD_SERIALIZED, or for just
/// that, it calls nothing of MPI while operations of Tutti are under way.
inline World init(MPI_Comm communicator, InitOptions options = {}) {
  std::uint64_t bits = 0;
  static_assert(sizeof communicator <= sizeof bits);
  std::memcpy(&bits, &communicator, sizeof communicator);
  options.communicator = bits;
  return init(options);
}

}  // namespace tutti
