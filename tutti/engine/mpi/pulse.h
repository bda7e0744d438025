#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include "tutti/engine/mpi/library.h"

namespace tutti::engine::mpi {

/// Keeps MPI going. MPI moves bytes only while somebody calls it, also those of a send that it says is over; a rank
/// that then waits in shared memory, or computes, does not, and its peer on another host would wait for the rest. So a
/// thread calls it when nobody has for a millisecond; the longer nothing happens, the more seldom. All groups of a
/// process share one.
class Pulse {
 public:
  /// The library outlives it.
  explicit Pulse(Library& library) : library_(library), thread_([this](const std::stop_token& stop) { run(stop); }) {}

 private:
  void run(const std::stop_token& stop);

  Library& library_;
  std::mutex mutex_;
  std::condition_variable_any stopped_;
  std::jthread thread_;
};

}  // namespace tutti::engine::mpi
