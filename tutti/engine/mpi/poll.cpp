#include "tutti/engine/mpi/poll.h"

#include <sched.h>
#include <time.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tutti::engine::mpi {

bool Pause::next() {
  constexpr unsigned kSpins = 8;      // a look at MPI takes about as long as a yield
  constexpr unsigned kYields = 2000;  // some hundred microseconds
  constexpr long kNap = 20'000;       // nanoseconds
  ++looks_;
  if (looks_ < kSpins) {
    return false;
  }
  if (looks_ < kYields) {
    ::sched_yield();
    return looks_ % 64 == 0;
  }
  const timespec nap{.tv_sec = 0, .tv_nsec = kNap};
  ::nanosleep(&nap, nullptr);
  return true;
}

std::optional<Error> reason_to_stop(Hub& hub, const std::vector<Rank>& missing, const Doing& doing, Deadline deadline) {
  if (auto broken = hub.broken()) {
    return broken;
  }
  if (!deadline.expired()) {
    return std::nullopt;
  }
  constexpr std::chrono::milliseconds kMoment{500};
  const auto moment = Deadline::after(kMoment);
  while (!moment.expired()) {
    if (auto broken = hub.broken()) {
      return broken;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  std::vector<int> numbers;
  for (const auto rank : missing) {
    numbers.push_back(to_int(rank));
  }
  return Error{Code::timed_out,
               fmt::format("{}: the deadline passed; still missing: rank{} {}, on another host", doing.text(),
                           numbers.size() == 1 ? "" : "s", fmt::join(numbers, ", ")),
               missing.empty() ? std::nullopt : std::optional(missing.front())};
}

}  // namespace tutti::engine::mpi
