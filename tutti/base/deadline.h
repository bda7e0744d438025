#pragma once

#include <algorithm>
#include <chrono>

namespace tutti {

/// A moment after which nobody waits any longer. Built once at the top of an operation and passed down, so that ten
/// waits inside it do not add up to ten time-outs. Monotonic: moving the wall clock changes nothing.
class Deadline {
 public:
  using Clock = std::chrono::steady_clock;
  using Milliseconds = std::chrono::milliseconds;

  static Deadline after(Clock::duration timeout) {
    const auto now = Clock::now();
    const bool beyond = timeout > Clock::time_point::max() - now;
    return Deadline(beyond ? Clock::time_point::max() : now + timeout);
  }
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
  explicit Deadline(Clock::time_point at) : at_(at) {}
  Clock::time_point at_;
};

}  // namespace tutti
