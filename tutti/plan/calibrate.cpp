#include "tutti/plan/calibrate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "tutti/plan/simulate.h"

namespace tutti::plan {
namespace {

/// Figures of one level, in the order in which they are solved for.
enum Figure : std::size_t { latency, send, receive, send_byte, receive_byte, stream_byte, figures };
using Row = std::array<double, figures>;

Error missing(const std::string& sentence) { return {Code::invalid_argument, "calibration: " + sentence}; }

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// How often each figure is in a timing.
Row row_of(const TimedMessage& timed) {
  const double out = timed.kind == TimedMessage::Kind::fan_out ? timed.peers : 1;
  const double in = timed.kind == TimedMessage::Kind::fan_in ? timed.peers : 1;
  Row row{};
  row[latency] = 1;
  row[send] = out;
  row[receive] = in;
  if (timed.level == 0) {
    row[send_byte] = out * timed.bytes;
    row[receive_byte] = in * timed.bytes;
  } else {
    row[stream_byte] = std::max(out, in) * timed.bytes;  // through one link
  }
  return row;
}

/// The figures, none negative, with the least sum of squares of relative errors: one after the other, until none moves.
Row solve(const std::vector<std::pair<Row, double>>& equations) {
  Row found{};
  constexpr int kRounds = 20'000;
  for (int round = 0; round < kRounds; ++round) {
    double moved = 0;
    for (std::size_t figure = 0; figure < figures; ++figure) {
      double slope = 0;
      double pull = 0;
      for (const auto& [row, seconds] : equations) {
        double rest = 1;
        for (std::size_t other = 0; other < figures; ++other) {
          rest -= other == figure ? 0 : row[other] / seconds * found[other];
        }
        const auto part = row[figure] / seconds;
        slope += part * part;
        pull += part * rest;
      }
      const auto value = slope > 0 ? std::max(0.0, pull / slope) : 0;
      moved = std::max(moved, std::abs(value - found[figure]) / std::max(value, 1e-300));
      found[figure] = value;
    }
    if (moved < 1e-9) {
      break;
    }
  }
  return found;
}

Status fit_level(Network& network, std::size_t index, const std::vector<TimedMessage>& messages) {
  auto& level = network.levels[index];
  std::vector<std::pair<Row, double>> equations;
  std::array<int, 4> seen{};
  double link = 0;
  for (const auto& timed : messages) {
    if (timed.level != index) {
      continue;
    }
    if (!(timed.seconds > 0) || !(timed.bytes > 0) || timed.peers < 1) {
      return missing(fmt::format("level '{}': a message without time, bytes or peers", level.name));
    }
    ++seen[static_cast<std::size_t>(timed.kind)];
    if (timed.kind != TimedMessage::Kind::crossing) {
      equations.emplace_back(row_of(timed), timed.seconds);
    }
  }
  constexpr std::array kNames{"ping_pong", "fan_out", "fan_in", "crossing"};
  for (std::size_t kind = 0; kind < (index == 0 ? 3 : 4); ++kind) {
    if (seen[kind] == 0) {
      return missing(fmt::format("level '{}': no {} was timed", level.name, kNames[kind]));
    }
  }
  const auto found = solve(equations);
  level.latency = found[latency];
  level.send = {found[send], found[send_byte]};
  level.receive = {found[receive], found[receive_byte]};
  level.stream = found[stream_byte] > 0 ? 1 / found[stream_byte] : 0;
  for (const auto& timed : messages) {
    if (timed.level == index && timed.kind == TimedMessage::Kind::crossing) {
      const auto apart = found[latency] + found[send] + found[receive];
      link = std::max(link, timed.peers * timed.bytes / std::max(timed.seconds - apart, timed.seconds / 10));
    }
  }
  level.link = link;
  level.source = "calibrated";
  return {};
}

/// Bytes per second of one rank, or of all, by bytes.
std::map<double, double> speeds(const std::vector<TimedWork>& works, TimedWork::Kind kind, bool alone) {
  std::map<double, std::vector<double>> all;
  for (const auto& work : works) {
    if (work.kind == kind && (work.ranks == 1) == alone) {
      all[work.bytes].push_back(work.ranks * work.bytes / work.seconds);
    }
  }
  std::map<double, double> medians;
  for (auto& [bytes, values] : all) {
    medians[bytes] = median(std::move(values));
  }
  return medians;
}

Status fit_processors(Network& network, const std::vector<TimedWork>& works) {
  if (std::any_of(works.begin(), works.end(),
                  [](const TimedWork& work) { return !(work.seconds > 0) || !(work.bytes > 0) || work.ranks < 1; })) {
    return missing("work without time, bytes or ranks");
  }
  auto& processors = network.processors;
  const auto copies = speeds(works, TimedWork::Kind::copy, true);
  const auto sums = speeds(works, TimedWork::Kind::reduce, true);
  if (copies.empty() || sums.empty()) {
    return missing(fmt::format("no {} by one rank was timed", copies.empty() ? "copy" : "reduce"));
  }
  processors.copy = copies.begin()->second;
  processors.reduce = sums.begin()->second;
  processors.slowdown.clear();
  for (const auto& [bytes, speed] : copies) {
    auto factor = processors.copy / speed;
    if (const auto sum = sums.find(bytes); sum != sums.end()) {
      factor = std::sqrt(factor * processors.reduce / sum->second);
    }
    processors.slowdown.push_back({bytes, factor});
  }
  // Where all together do less than each alone would, that is what there is to share.
  processors.memory = 0;
  for (const auto& [bytes, together] : speeds(works, TimedWork::Kind::copy, false)) {
    const auto alone = at_size(network, bytes).processors.copy;
    const auto factor = processors.copy / alone;
    const auto ranks = std::find_if(works.begin(), works.end(), [at = bytes](const TimedWork& work) {
                         return work.kind == TimedWork::Kind::copy && work.bytes == at && work.ranks > 1;
                       })->ranks;
    if (together < 0.93 * alone * ranks) {
      const auto shared = together * factor;
      processors.memory = processors.memory > 0 ? std::min(processors.memory, shared) : shared;
    }
  }
  processors.source = "calibrated";
  return {};
}

/// What `refine` turns.
constexpr std::size_t kKnobs = 5;
using Knobs = std::array<double, kKnobs>;  // logarithms of factors

Network turned(Network network, const Knobs& knobs) {
  const auto factor = [&](std::size_t knob) { return std::exp(knobs[knob]); };
  for (auto& level : network.levels) {
    level.latency *= factor(0);
    for (auto* cost : {&level.send, &level.receive}) {
      cost->seconds *= factor(1);
      cost->seconds_per_byte *= factor(2);
    }
    level.link /= factor(3);
    level.stream /= factor(3);
  }
  network.processors.reduce /= factor(4);
  network.processors.copy /= factor(4);
  network.processors.combine_seconds *= factor(4);
  return network;
}

double error_of(const Network& network, std::span<const Plan> plans, std::span<const TimedPlan> timed) {
  double sum = 0;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const auto seconds = simulate(plans[i], timed[i].bytes, network).value().seconds;
    const auto error = std::log(std::max(seconds, 1e-12) / timed[i].seconds);
    sum += error * error;
  }
  return sum;
}

}  // namespace

Result<Network> calibrate(Network network, const Timings& timings) {
  for (std::size_t i = 0; i < network.levels.size(); ++i) {
    if (auto good = fit_level(network, i, timings.messages); !good) {
      return good.error();
    }
  }
  if (auto good = fit_processors(network, timings.works); !good) {
    return good.error();
  }
  if (auto good = check(network, 1); !good) {
    return good.error();
  }
  return network;
}

Result<Network> refine(Network network, std::span<const TimedPlan> plans) {
  std::vector<Plan> built;
  for (const auto& timed : plans) {
    auto plan = build(timed.request);
    if (!plan) {
      return plan.error();
    }
    if (auto ends = simulate(plan.value(), timed.bytes, network); !ends) {
      return ends.error();
    }
    if (!(timed.seconds > 0)) {
      return missing("a plan without time");
    }
    built.push_back(std::move(plan).value());
  }
  // One knob after the other, in steps that get smaller while none helps.
  Knobs best{};
  auto least = error_of(network, built, plans);
  const auto most = std::log(10.0);
  for (double step = 0.4; step > 0.004;) {
    bool better = false;
    for (std::size_t knob = 0; knob < kKnobs; ++knob) {
      for (const auto change : {step, -step}) {
        auto tried = best;
        tried[knob] = std::clamp(tried[knob] + change, -most, most);
        if (const auto error = error_of(turned(network, tried), built, plans); error < least) {
          least = error;
          best = tried;
          better = true;
          break;
        }
      }
    }
    step = better ? step : step / 2;
  }
  return turned(std::move(network), best);
}

}  // namespace tutti::plan
