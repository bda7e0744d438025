#pragma once

#include <chrono>
#include <thread>

#include "tutti/engine/hub.h"
#include "tutti/engine/mpi/library.h"
#include "tutti/memory/wait.h"

namespace tutti::engine::mpi {

/// Waiting where nobody rings a bell: MPI moves only what it is asked to. Looks again and again, the longer it takes
/// the more seldom, and lets others have the core.
class Pause {
 public:
  /// Before the next look. True now and then: time to see whether waiting still makes sense.
  bool next();

 private:
  using Clock = std::chrono::steady_clock;

  unsigned looks_ = 0;
  Clock::time_point since_ = {};
};

/// Why a wait of this rank for others should end: the group is broken, or the deadline has passed. When it has, those
/// who know more (who was missing on another host) get a moment to say so first. `missing`: who is waited for, ranks in
/// the group.
std::optional<Error> reason_to_stop(Hub& hub, const std::vector<Rank>& missing, const Doing& doing, Deadline deadline);

/// Waits until nothing is pending. `error`: of what was begun; 0 for none. A failure leaves what is pending as it is.
Status finish_all(Hub& hub, Library& library, Requests& requests, int error, const std::vector<Rank>& missing,
                  const Doing& doing, Deadline deadline);

/// What to make of an error of MPI while others were waited for: mostly one of them is gone, and whoever knows which
/// gets a moment to say so.
Error explain_failure(Hub& hub, const Library& library, int code, const std::vector<Rank>& missing, const Doing& doing);

}  // namespace tutti::engine::mpi
