#pragma once
// Ways to run an operation, timed in turns.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "bench/trials.h"

namespace bench {

/// Something that an operation can be run by, and how long that took.
class Contender {
 public:
  explicit Contender(std::string by) : choices(std::move(by)) {}

  const std::string choices;
  std::size_t batch = 1;
  std::vector<double> samples;  ///< microseconds, each of the slowest rank

  double time() const { return at(0.5); }
  /// What it takes while nobody disturbs.
  double calm_time() const { return at(0.25); }

 private:
  double at(double fraction) const {
    auto sorted = samples;
    std::sort(sorted.begin(), sorted.end());
    return percentile(sorted, fraction);
  }
};

/// Of those that took turns: turn by turn, since what else a machine does comes and goes.
double ratio(const Contender& one, const Contender& other);

/// Times contenders for one operation on one size. All ranks come to the same times, and so to the same decisions.
class Contest {
 public:
  Contest(World& world, const tutti::Group& group, std::string op, const CollectiveTrial& trial)
      : world_(world), group_(group), op_(std::move(op)), trial_(trial) {}

  /// A first look at each, with its result checked. Returns those that are not hopeless: so many times the quickest.
  std::vector<Contender*> enter_all(std::vector<Contender>& all, double hopeless);

  /// Takes turns until the time is over, and so many rounds, if they take no more than some times that; those that are
  /// further behind than that drop out on the way.
  void compete(std::vector<Contender*>& contenders, double seconds, double behind, int rounds);

  static std::vector<Contender*>::iterator quickest(std::vector<Contender*>& contenders);

 private:
  void enter(Contender& contender);
  void sample(Contender& contender, std::size_t count);
  double time(std::size_t iterations);

  World& world_;
  const tutti::Group& group_;
  std::string op_;
  const CollectiveTrial& trial_;
};

}  // namespace bench
