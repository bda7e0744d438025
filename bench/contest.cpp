#include "bench/contest.h"

namespace bench {

double ratio(const Contender& one, const Contender& other) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(one.samples.size(), other.samples.size()); ++i) {
    ratios.push_back(one.samples[i] / other.samples[i]);
  }
  std::sort(ratios.begin(), ratios.end());
  return percentile(ratios, 0.5);
}

void Contest::enter(Contender& contender) {
  group_.choose(op_, contender.choices);
  verify(world_, trial_);
  trial_.touch();
  time(1);  // plans are built, memory is touched
  contender.samples = world_.slowest({time(1), time(1), time(1)});
  constexpr double kBatch = 250;  // microseconds
  const auto once = std::max(*std::min_element(contender.samples.begin(), contender.samples.end()), 0.1);
  contender.batch = static_cast<std::size_t>(std::clamp(kBatch / once, 1.0, 1000.0));
}

void Contest::sample(Contender& contender, std::size_t count) {
  group_.choose(op_, contender.choices);
  time(1);
  std::vector<double> times(count);
  for (auto& each : times) {
    each = time(contender.batch) / static_cast<double>(contender.batch);
  }
  times = world_.slowest(std::move(times));
  contender.samples.insert(contender.samples.end(), times.begin(), times.end());
}

std::vector<Contender*> Contest::enter_all(std::vector<Contender>& all, double hopeless) {
  std::vector<Contender*> left;
  double best = 1e300;
  for (auto& each : all) {
    enter(each);
    left.push_back(&each);
    best = std::min(best, each.calm_time());
  }
  std::erase_if(left, [&](const Contender* each) { return each->calm_time() > hopeless * best; });
  for (auto* const each : left) {
    each->samples.clear();  // one by one they took longer
  }
  return left;
}

void Contest::compete(std::vector<Contender*>& contenders, double seconds, double behind, int rounds) {
  constexpr int kFewest = 5;       // rounds, before anybody is judged
  constexpr double kPatience = 4;  // times the seconds
  const auto begin = Clock::now();
  for (int round = 1;; ++round) {
    // To and fro: whoever always came first, or after the same other, would be judged by that.
    std::reverse(contenders.begin(), contenders.end());
    for (auto* const each : contenders) {
      sample(*each, 2);
    }
    if (round < kFewest) {
      continue;
    }
    const auto best = (*quickest(contenders))->calm_time();
    std::erase_if(contenders, [&](const Contender* each) { return each->calm_time() > behind * best; });
    const auto spent = world_.agree(microseconds_since(begin)) / (seconds * 1e6);
    if (spent > (round < rounds ? kPatience : 1)) {
      return;
    }
  }
}

std::vector<Contender*>::iterator Contest::quickest(std::vector<Contender*>& contenders) {
  return std::min_element(contenders.begin(), contenders.end(),
                          [](const Contender* a, const Contender* b) { return a->time() < b->time(); });
}

double Contest::time(std::size_t iterations) {
  world_.barrier();
  const auto start = Clock::now();
  for (std::size_t i = 0; i < iterations; ++i) {
    trial_.run();
  }
  return microseconds_since(start);
}

}  // namespace bench
