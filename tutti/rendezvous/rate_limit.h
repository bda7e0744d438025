#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

namespace tutti::rendezvous {

/// Lets a few lines a second into a log and counts the rest. One thread.
class RateLimit {
 public:
  using Clock = std::chrono::steady_clock;

  explicit RateLimit(int lines_per_second) : lines_(lines_per_second) {}

  /// nullopt: keep quiet. Otherwise speak, and say how many lines were left out since the last time.
  std::optional<std::uint64_t> allow(Clock::time_point now) {
    if (now - window_ >= std::chrono::seconds(1)) {
      window_ = now;
      spent_ = 0;
    }
    if (spent_ >= lines_) {
      ++left_out_;
      return std::nullopt;
    }
    ++spent_;
    const auto left_out = left_out_;
    left_out_ = 0;
    return left_out;
  }

 private:
  int lines_;
  int spent_ = 0;
  Clock::time_point window_{};
  std::uint64_t left_out_ = 0;
};

}  // namespace tutti::rendezvous
