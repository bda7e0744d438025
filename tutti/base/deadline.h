#pragma once

#include <time.h>

#include <algorithm>
#include <chrono>

namespace tutti {

/// A moment after which nobody waits any longer. Built once at the top of an operation and passed down, so that ten
/// waits inside it do not add up to ten time-outs. Monotonic: moving the wall clock changes nothing.
class Deadline {
 public:
  using Clock = std::chrono::steady_clock;
  using Milliseconds = std::chrono::milliseconds;

  /// Of any unit; a century or more is never. (Compared before it is converted: a large number would overflow.)
  template <class Number, class Unit>
  static Deadline after(std::chrono::duration<Number, Unit> timeout) {
    constexpr auto kCentury = std::chrono::hours(24 * 365 * 100);
    if (timeout >= kCentury) {
      return never();
    }
    const auto positive = std::max(timeout, std::chrono::duration<Number, Unit>::zero());
    return Deadline(now_for(positive >= kLong) + std::chrono::duration_cast<Clock::duration>(positive));
  }
  /// As c10d has it: a time-out of 0 is none.
  static Deadline after_or_never(Milliseconds timeout) {
    return timeout == Milliseconds::zero() ? never() : after(timeout);
  }
  static Deadline now() { return Deadline(Clock::now()); }
  static Deadline never() { return Deadline(Clock::time_point::max()); }

  bool is_never() const { return at_ == Clock::time_point::max(); }
  bool expired() const { return !is_never() && Clock::now() >= at_; }
  Clock::time_point at() const { return at_; }

  /// What is left, never negative; a year when there is no end.
  Clock::duration remaining() const {
    if (is_never()) {
      return std::chrono::hours(24 * 365);
    }
    return std::max(Clock::duration::zero(), at_ - Clock::now());
  }

  /// What is left as poll() and epoll_wait() want it: rounded up, so that a wait never ends just before the deadline.
  int poll_timeout_ms() const {
    if (is_never()) {
      return -1;
    }
    const auto left = std::chrono::ceil<Milliseconds>(remaining()).count();
    return static_cast<int>(std::min<Milliseconds::rep>(left, 1 << 30));
  }

 private:
  static constexpr auto kLong = std::chrono::seconds(5);

  explicit Deadline(Clock::time_point at) : at_(at) {}

  /// Reading the exact clock takes as long as a good part of a small collective; where some milliseconds do not matter,
  /// that of the last tick will do, one tick (10 ms at most) later, so that nobody gives up early.
  static Clock::time_point now_for(bool roughly) {
    timespec ticked{};
    if (!roughly || ::clock_gettime(CLOCK_MONOTONIC_COARSE, &ticked) != 0) {
      return Clock::now();
    }
    return Clock::time_point(std::chrono::seconds(ticked.tv_sec) + std::chrono::nanoseconds(ticked.tv_nsec) +
                             std::chrono::milliseconds(10));
  }

  Clock::time_point at_;
};

}  // namespace tutti
