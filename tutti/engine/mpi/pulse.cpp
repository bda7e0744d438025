#include "tutti/engine/mpi/pulse.h"

#include <algorithm>

namespace tutti::engine::mpi {

void Pulse::run(const std::stop_token& stop) {
  constexpr std::chrono::milliseconds kShortest{1};
  constexpr std::chrono::milliseconds kLongest{64};
  auto nap = kShortest;
  auto seen = library_.calls();
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    stopped_.wait_for(lock, stop, nap, [] { return false; });
    const auto calls = library_.calls();
    if (calls != seen) {
      seen = calls;
      nap = kShortest;
    } else {
      library_.nudge();
      nap = std::min(2 * nap, kLongest);
    }
  }
}

}  // namespace tutti::engine::mpi
