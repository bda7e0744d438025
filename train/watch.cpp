#include "train/watch.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

namespace tutti::train {
namespace {

constexpr int kStepsInARow = 5;
constexpr double kLatePart = 0.5;
constexpr double kLeastLateMs = 1;

template <class Number>
double median(std::span<const StepNews> ranks, Number number) {
  std::vector<double> values;
  for (const auto& rank : ranks) {
    values.push_back(number(rank.times));
  }
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

observe::RunEvent event_of(Event event, Rank rank, std::int64_t step, std::string text) {
  return {.step = step, .rank = to_int(rank), .kind = std::string(to_string(event)), .text = std::move(text)};
}

}  // namespace

void Watch::look_for_late(std::int64_t step, std::span<const StepNews> ranks, std::vector<observe::RunEvent>& events) {
  const auto arrived = median(ranks, [](const auto& times) { return times.arrived_ms; });
  const auto busy = median(ranks, [](const auto& times) { return times.step - times.exposed; });
  const auto last = std::max_element(
      ranks.begin(), ranks.end(), [](const auto& a, const auto& b) { return a.times.arrived_ms < b.times.arrived_ms; });
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const auto behind = ranks[i].times.arrived_ms - arrived;
    const bool late = &ranks[i] == &*last && behind > std::max(kLeastLateMs, kLatePart * busy);
    late_[i] = late ? late_[i] + 1 : 0;
    if (late_[i] < kStepsInARow) {
      continue;
    }
    const auto detail =
        fmt::format("by {:.0f} ms, for {} steps in a row: the others wait for it", behind, kStepsInARow);
    if (auto said = once_.say(Event::late_rank, to_rank(i), step, detail)) {
      events.push_back(event_of(Event::late_rank, to_rank(i), step, std::move(*said)));
    }
  }
}

std::vector<observe::RunEvent> Watch::step(std::int64_t step, std::span<const StepNews> ranks, double gradient_norm) {
  std::vector<observe::RunEvent> events;
  look_for_late(step, ranks, events);
  bool lost = false;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const auto& losses = ranks[i].losses;
    const auto found = std::find_if(losses.begin(), losses.end(), [](double loss) { return !std::isfinite(loss); });
    if (found == losses.end()) {
      continue;
    }
    lost = true;
    const auto detail = fmt::format("(loss {}): the step is left out", std::abs(*found));
    if (auto said = once_.say(Event::not_a_number, to_rank(i), step, detail)) {
      events.push_back(event_of(Event::not_a_number, to_rank(i), step, std::move(*said)));
    }
  }
  if (!std::isfinite(gradient_norm) && !lost && !std::exchange(norm_said_, true)) {
    events.push_back(
        {.step = step,
         .rank = -1,
         .kind = std::string(to_string(Event::not_a_number)),
         .text = fmt::format("the gradient's norm in step {} was {}, though all losses are numbers: the step is left "
                             "out (a smaller learning rate may help)",
                             step, gradient_norm)});
  }
  return events;
}

std::optional<observe::RunEvent> Watch::diverged(std::int64_t step, Rank rank, const std::string& why) {
  auto said = once_.say(Event::diverged_replica, rank, step, fmt::format("({})", why));
  return said ? std::optional(event_of(Event::diverged_replica, rank, step, std::move(*said))) : std::nullopt;
}

}  // namespace tutti::train
