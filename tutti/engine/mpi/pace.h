#pragma once

#include <chrono>
#include <cstddef>

namespace tutti::engine::mpi {

/// How fast bytes come from other hosts, by what is received: the time counts in which something was waited for,
/// however much at once.
class Pace {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// Somebody waits for a message.
  void begin(Time now);
  /// So many bytes of it are here, and no more will come.
  void end(Time now, std::size_t bytes);

  /// As over a cable of 1 Gbit/s. Not before it is known.
  bool is_slow() const { return slow_; }

 private:
  static constexpr double kSlow = 140e6;  // bytes per second
  static constexpr double kFast = 220e6;
  static constexpr std::size_t kEnough = std::size_t{4} << 20;  // to tell: ranks may lose their cores for a while

  std::size_t under_way_ = 0;  // messages
  Time since_;
  std::chrono::duration<double> waited_{0};
  std::size_t bytes_ = 0;
  bool slow_ = false;
};

}  // namespace tutti::engine::mpi
