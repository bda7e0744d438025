#include "tutti/plan/calibrate.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <future>
#include <thread>

#include "tutti/plan/simulate.h"

namespace tutti::plan {
namespace {

using Numbers = std::vector<double>;

/// All that may move.
std::vector<double*> figures_of(Network& network) {
  auto& processors = network.processors;
  std::vector<double*> all{
      &processors.copy,         &processors.reduce, &processors.sum,           &processors.combine_seconds,
      &processors.step_seconds, &processors.memory, &processors.switch_seconds};
  for (auto& cache : processors.caches) {
    all.insert(all.end(), {&cache.bytes, &cache.seconds_per_byte});
  }
  for (auto& step : processors.crowding) {
    if (&step != &processors.crowding.front()) {  // the others are relative to it
      all.push_back(&step.factor);
    }
  }
  for (auto& level : network.levels) {
    all.insert(all.end(), {&level.latency, &level.stream, &level.link, &level.burst, &level.ring.seconds,
                           &level.ring.answer, &level.meeting.seconds, &level.meeting.seconds_per_member});
    for (auto* cost : {&level.send, &level.receive}) {
      all.insert(all.end(), {&cost->seconds, &cost->seconds_per_byte, &cost->ramp, &cost->ramp_bytes});
    }
  }
  std::erase_if(all, [](const double* figure) { return *figure == 0; });
  return all;
}

/// The guess, each figure multiplied by the exponential of a number. A cache that would hold less than the one before
/// it holds hardly more than that.
Network moved(Network network, const Numbers& by) {
  const auto figures = figures_of(network);
  for (std::size_t i = 0; i < figures.size(); ++i) {
    *figures[i] *= std::exp(by[i]);
  }
  constexpr double kHardlyMore = 1.001;
  double before = 0;
  for (auto& cache : network.processors.caches) {
    cache.bytes = std::max(cache.bytes, kHardlyMore * before);
    before = cache.bytes;
  }
  return network;
}

constexpr double kFar = 0.3;

struct Timed {
  Plan plan;
  const TimedPlan* timed;
};

/// With the ranks that took part on each host.
Result<double> simulate_timed(const Plan& plan, const TimedPlan& timed, Network network) {
  if (timed.ranks_of_host > 0) {
    network.levels[0].members = timed.ranks_of_host;
  }
  return seconds_in_a_row(plan, timed.bytes, network);
}

/// Logarithms of simulated over measured. Beyond kFar their squares grow no faster than they do: a plan that was timed
/// at a bad moment must not move everything else.
Numbers errors_of(const Network& network, std::span<const Timed> plans) {
  Numbers errors;
  for (const auto& [plan, timed] : plans) {
    const auto seconds = simulate_timed(plan, *timed, network).value();
    const auto error = std::log(std::max(seconds, 1e-12) / timed->seconds);
    const auto far = std::abs(error) > kFar;
    errors.push_back(far ? std::copysign(std::sqrt(kFar * (2 * std::abs(error) - kFar)), error) : error);
  }
  return errors;
}

/// The same on all cores.
Numbers errors_at_once(const Network& network, std::span<const Timed> plans) {
  const std::size_t cores = std::max(1U, std::thread::hardware_concurrency());
  const auto each = (plans.size() + cores - 1) / cores;
  std::vector<std::future<Numbers>> parts;
  for (std::size_t begin = 0; begin < plans.size(); begin += each) {
    parts.push_back(std::async(std::launch::async, errors_of, std::cref(network),
                               plans.subspan(begin, std::min(each, plans.size() - begin))));
  }
  Numbers errors;
  for (auto& part : parts) {
    const auto some = part.get();
    errors.insert(errors.end(), some.begin(), some.end());
  }
  return errors;
}

/// Solves a symmetric positive system, by elimination.
Numbers solve(std::vector<Numbers> matrix, Numbers right) {
  const auto count = right.size();
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t row = i + 1; row < count; ++row) {
      const auto factor = matrix[row][i] / matrix[i][i];
      for (std::size_t column = i; column < count; ++column) {
        matrix[row][column] -= factor * matrix[i][column];
      }
      right[row] -= factor * right[i];
    }
  }
  for (std::size_t i = count; i-- > 0;) {
    for (std::size_t column = i + 1; column < count; ++column) {
      right[i] -= matrix[i][column] * right[column];
    }
    right[i] /= matrix[i][i];
  }
  return right;
}

/// Finds how far figures have to move (Levenberg and Marquardt).
class Search {
 public:
  Search(const Network& guess, std::span<const Timed> plans, std::size_t figures)
      : guess_(guess), plans_(plans), at_(figures, 0), errors_(errors_of(guess, plans)) {}

  /// Times have steps and bends, where near slopes may lead nowhere, and far ones past the best: the better of both.
  Numbers run() {
    auto other = *this;
    descend(0.02, 1e-5);
    other.descend(0.2, 1e-3);
    other.descend(0.05, 1e-3);
    other.descend(0.02, 1e-5);
    return badness(errors_, at_) <= badness(other.errors_, other.at_) ? at_ : other.at_;
  }

 private:
  // A figure that no plan depends on stays where it was guessed.
  static constexpr double kPull = 1e-3;

  /// Until a round brings no more than `little` of what is left. Slopes are those over `reach`.
  void descend(double reach, double little) {
    double damping = 0.1;
    constexpr int kRounds = 60;
    for (int round = 0; round < kRounds && damping < 1e6; ++round) {
      const auto slopes = slopes_here(reach);
      const auto before = badness(errors_, at_);
      bool better = false;
      for (; !better && damping < 1e6; damping *= better ? 0.2 : 5) {
        const auto tried = step(slopes, damping);
        const auto errors = errors_at_once(moved(guess_, tried), plans_);
        if (better = badness(errors, tried) < before; better) {
          at_ = tried;
          errors_ = errors;
        }
      }
      if (before - badness(errors_, at_) < little * before) {
        break;
      }
    }
  }

  static double badness(const Numbers& errors, const Numbers& at) {
    double sum = 0;
    for (const auto error : errors) {
      sum += error * error;
    }
    for (const auto far : at) {
      sum += kPull * far * far;
    }
    return sum;
  }

  /// By figure, how each error changes with it when it moves so far.
  std::vector<Numbers> slopes_here(double reach) const {
    std::vector<std::future<Numbers>> besides;
    for (std::size_t i = 0; i < at_.size(); ++i) {
      auto beside = at_;
      beside[i] += reach;
      besides.push_back(std::async(std::launch::async, errors_of, moved(guess_, beside), plans_));
    }
    std::vector<Numbers> slopes;
    for (auto& beside : besides) {
      slopes.push_back(beside.get());
      for (std::size_t k = 0; k < errors_.size(); ++k) {
        slopes.back()[k] = (slopes.back()[k] - errors_[k]) / reach;
      }
    }
    return slopes;
  }

  Numbers step(const std::vector<Numbers>& slopes, double damping) const {
    const auto count = at_.size();
    std::vector<Numbers> matrix(count, Numbers(count, 0));
    Numbers right(count, 0);
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t k = 0; k < errors_.size(); ++k) {
        right[i] -= slopes[i][k] * errors_[k];
        for (std::size_t j = 0; j < count; ++j) {
          matrix[i][j] += slopes[i][k] * slopes[j][k];
        }
      }
      right[i] -= kPull * at_[i];
      matrix[i][i] += kPull + damping * (matrix[i][i] + kPull);
    }
    auto to = solve(std::move(matrix), std::move(right));
    const auto most = std::log(1000.0);
    for (std::size_t i = 0; i < count; ++i) {
      to[i] = std::clamp(at_[i] + std::clamp(to[i], -1.0, 1.0), -most, most);
    }
    return to;
  }

  const Network& guess_;
  std::span<const Timed> plans_;
  Numbers at_;
  Numbers errors_;
};

}  // namespace

Result<double> simulated_seconds(const TimedPlan& timed, const Network& network) {
  const auto plan = build(timed.request);
  if (!plan) {
    return plan.error();
  }
  return simulate_timed(plan.value(), timed, network);
}

Result<Network> calibrate(const Network& guess, std::span<const TimedPlan> plans) {
  std::vector<Timed> all;
  for (const auto& timed : plans) {
    if (!(timed.seconds > 0)) {
      return Error{Code::invalid_argument, "calibration: a plan without time"};
    }
    if (auto good = simulated_seconds(timed, guess); !good) {
      return good.error();
    }
    all.push_back({build(timed.request).value(), &timed});
  }
  auto found = guess;
  found = moved(guess, Search(guess, all, figures_of(found).size()).run());
  found.processors.source = "calibrated";
  for (auto& level : found.levels) {
    level.source = "calibrated";
  }
  return found;
}

}  // namespace tutti::plan
