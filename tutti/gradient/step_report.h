#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tutti {

/// What synchronization did in one backward pass, on this rank.
struct StepReport {
  using Clock = std::chrono::steady_clock;

  struct Bucket {
    std::size_t bytes = 0;
    std::size_t parameters = 0;
    Clock::time_point ready{};    ///< its last gradient was there
    Clock::time_point started{};  ///< it was handed over; later than ready when its turn had not come
    Clock::time_point reduced{};
  };

  std::uint64_t step = 0;            ///< counts passes that synchronized
  std::uint64_t passes = 0;          ///< of backward that went into it, with paused ones
  Clock::time_point first_ready{};   ///< the pass's first gradient
  Clock::time_point last_ready{};    ///< the pass's end, when gradients of all parameters are computed
  Clock::time_point last_reduced{};  ///< when everything was there
  Clock::duration waited{};          ///< for how long this rank did nothing but wait for it
  std::size_t in_place = 0;          ///< bytes of gradients that backward computed in their bucket, and nobody copied
  std::vector<Bucket> buckets = {};

  std::size_t bytes() const;
  /// For how long something was on its way.
  std::chrono::duration<double> communication() const;
  /// For how long this rank did nothing but wait for it.
  std::chrono::duration<double> exposed() const { return waited; }
  /// The part of communication that took no time of the step's.
  std::chrono::duration<double> hidden() const { return communication() - exposed(); }

  /// One line: "step 12: 3 buckets, 41.2 MB, 38.0 of them in place, 5.20 ms under way, 0.30 ms exposed"
  std::string text() const;
};

}  // namespace tutti
