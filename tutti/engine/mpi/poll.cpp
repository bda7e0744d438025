#include "tutti/engine/mpi/poll.h"

#include <sched.h>

#include <algorithm>
#include <ctime>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tutti::engine::mpi {

bool Pause::next() {
  using std::chrono::microseconds;
  constexpr unsigned kSpins = 8;            // a look at MPI takes about as long as a yield
  constexpr microseconds kAwake(300);       // messages of a few bytes have come by then
  constexpr microseconds kShortestNap(20);  // what has taken long takes a little longer
  constexpr microseconds kLongestNap(400);  // a cable of 1 Gbit/s brings 50 KB in that time: less than sockets hold
  ++looks_;
  if (looks_ < kSpins) {
    return false;
  }
  const auto now = Clock::now();
  if (looks_ == kSpins) {
    since_ = now;
  }
  const auto waited = now - since_;
  if (waited < kAwake) {
    ::sched_yield();
    return looks_ % 64 == 0;
  }
  // Not this_thread::sleep_for, which goes on after a signal.
  const auto length = std::clamp<Clock::duration>(waited / 32, kShortestNap, kLongestNap);
  const timespec nap{.tv_sec = 0, .tv_nsec = std::chrono::nanoseconds(length).count()};
  ::nanosleep(&nap, nullptr);
  return true;
}

namespace {

/// Who knows more than this rank gets so long to say so.
std::optional<Error> heard_within(Hub& hub, std::chrono::milliseconds moment) {
  const auto end = Deadline::after(moment);
  for (;;) {
    if (auto broken = hub.broken()) {
      return broken;
    }
    if (end.expired()) {
      return std::nullopt;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

std::string list(const std::vector<Rank>& ranks) {
  std::vector<int> numbers;
  for (const auto rank : ranks) {
    numbers.push_back(to_int(rank));
  }
  return fmt::format("rank{} {}", numbers.size() == 1 ? "" : "s", fmt::join(numbers, ", "));
}

}  // namespace

std::optional<Error> reason_to_stop(Hub& hub, const std::vector<Rank>& missing, const Doing& doing, Deadline deadline) {
  if (auto broken = hub.broken()) {
    return broken;
  }
  if (!deadline.expired()) {
    return std::nullopt;
  }
  if (auto broken = heard_within(hub, std::chrono::milliseconds(500))) {
    return broken;
  }
  return Error{Code::timed_out,
               fmt::format("{}: the deadline passed; still missing: {}, on another host", doing.text(), list(missing)),
               missing.empty() ? std::nullopt : std::optional(missing.front())};
}

Error explain_failure(Hub& hub, const Library& library, int code, const std::vector<Rank>& missing,
                      const Doing& doing) {
  auto told = library.error(doing.text(), code);
  if (told.code != Code::system) {
    return told;
  }
  if (auto broken = heard_within(hub, std::chrono::milliseconds(1500))) {
    return *broken;
  }
  return {Code::peer_lost, fmt::format("{}; it was waiting for {}", told.message, list(missing)),
          missing.empty() ? std::nullopt : std::optional(missing.front())};
}

Status finish_all(Hub& hub, Library& library, Requests& requests, int error, const std::vector<Rank>& missing,
                  const Doing& doing, Deadline deadline) {
  std::vector<Over> ends;
  Pause pause;
  while (error == 0 && requests.pending() != 0) {
    ends.clear();
    error = library.call([&] { return requests.poll(ends); });
    for (const auto& end : ends) {
      error = error == 0 ? end.error : error;
    }
    if (!ends.empty()) {
      pause = Pause();
    }
    if (error != 0 || !ends.empty() || !pause.next()) {
      continue;
    }
    if (auto why = reason_to_stop(hub, missing, doing, deadline)) {
      return *why;
    }
  }
  return error == 0 ? Status() : Status(explain_failure(hub, library, error, missing, doing));
}

}  // namespace tutti::engine::mpi
