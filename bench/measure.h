#pragma once
// How every contestant is timed, so that their figures can stand side by side.
//
// The same buffers are used again and again, with nothing written to them in between. Operations run back to back in
// batches that are long against the clock's cost, and a barrier stands before each batch. One sample is the time of a
// batch over its operations, on the rank that was slowest; reported are the median and the 10th and 90th percentile.
//
// With `--touch yes` every rank writes its buffers before each operation, and each operation is timed by itself after a
// barrier: what ranks that compute in between see. Where buffers are shared, cache lines then have to move between
// cores, which they need not when nobody writes. Below some KiB this measures the barrier and the clock, too.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "bench/options.h"

namespace bench {

/// The little that timing needs of the ranks under test. Every rank calls each of these, in the same order.
class World {
 public:
  World() = default;
  World(const World&) = delete;
  World& operator=(const World&) = delete;
  virtual ~World() = default;
  [[nodiscard]] virtual std::size_t rank() const = 0;
  [[nodiscard]] virtual std::size_t ranks() const = 0;
  virtual void barrier() = 0;
  /// Rank 0's value, everywhere.
  virtual double agree(double value) = 0;
  /// Element by element the largest of all ranks' values; valid on rank 0.
  virtual std::vector<double> slowest(std::vector<double> values) = 0;
};

struct Summary {
  double median_us = 0;
  double p10_us = 0;
  double p90_us = 0;
  std::size_t samples = 0;
};

/// Between the two nearest samples, as NumPy does it. `sorted` is not empty.
inline double percentile(const std::vector<double>& sorted, double fraction) {
  const double position = fraction * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const auto above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (position - std::floor(position)) * (sorted[above] - sorted[below]);
}

inline Summary summarize(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  return {percentile(samples, 0.5), percentile(samples, 0.1), percentile(samples, 0.9), samples.size()};
}

/// What is timed: `run` is the operation, `touch` writes this rank's buffers anew.
template <typename Run, typename Touch>
struct Trial {
  Run run;
  Touch touch;
  bool touching;
};

using Clock = std::chrono::steady_clock;

inline double microseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

/// Microseconds of `iterations` calls on this rank, begun together.
template <typename Run, typename Touch>
double time_batch(World& world, std::size_t iterations, Trial<Run, Touch>& trial) {
  if (trial.touching) {
    double sum = 0;
    for (std::size_t i = 0; i < iterations; ++i) {
      trial.touch();
      world.barrier();
      const auto start = Clock::now();
      trial.run();
      sum += microseconds_since(start);
    }
    return sum;
  }
  world.barrier();
  const auto start = Clock::now();
  for (std::size_t i = 0; i < iterations; ++i) {
    trial.run();
  }
  return microseconds_since(start);
}

/// Runs the operation for a fifth of the time that will be measured. Returns microseconds per operation in the best
/// batch, the same on all ranks.
template <typename Run, typename Touch>
double warm_up(World& world, double seconds, Trial<Run, Touch>& trial) {
  double spent = 0;
  double fastest = 0;
  for (std::size_t iterations = 1; spent < seconds * 2e5; iterations *= 2) {
    const double batch = world.agree(time_batch(world, iterations, trial));
    const double per_operation = batch / static_cast<double>(iterations);
    fastest = spent == 0 ? per_operation : std::min(fastest, per_operation);
    spent += batch;
  }
  return std::max(fastest, 1e-3);
}

template <typename Run, typename Touch>
Summary measure(World& world, const Options& options, Run run, Touch touch) {
  constexpr double kBatchMicroseconds = 200;
  Trial<Run, Touch> trial{std::move(run), std::move(touch), options.touch};
  const double estimate = warm_up(world, options.seconds_per_size, trial);
  const auto batch = static_cast<std::size_t>(std::clamp(kBatchMicroseconds / estimate, 1.0, 1e4));
  const double wanted = options.seconds_per_size * 1e6 / (estimate * static_cast<double>(batch));
  const auto most = static_cast<double>(kMostSamples);
  const auto samples = static_cast<std::size_t>(std::clamp(wanted, static_cast<double>(options.min_iterations), most));

  std::vector<double> times(samples);
  for (double& time : times) {
    time = time_batch(world, batch, trial) / static_cast<double>(batch);
  }
  return summarize(world.slowest(std::move(times)));
}

struct Contestant {
  std::string library;
  std::string version;
  std::string memory;
};

/// One JSON object on a line of its own. Rank 0 calls this.
inline void print_line(const Options& options, const Contestant& who, std::size_t ranks, std::size_t bytes,
                       const Summary& summary) {
  std::printf(R"({"op":"%s","ranks":%zu,"bytes":%zu,"dtype":"%s","memory":"%s","library":"%s","version":"%s",)"
              R"("median_us":%.4f,"p10_us":%.4f,"p90_us":%.4f,"samples":%zu})"
              "\n",
              options.op.c_str(), ranks, bytes, options.dtype.c_str(), who.memory.c_str(), who.library.c_str(),
              who.version.c_str(), summary.median_us, summary.p10_us, summary.p90_us, summary.samples);
  std::fflush(stdout);
}

}  // namespace bench
