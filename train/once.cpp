#include "train/once.h"

#include <algorithm>

#include <fmt/format.h>

namespace tutti::train {
namespace {

/// What a rank did, for a sentence that begins with it.
std::string_view verb_of(Event event) {
  switch (event) {
    case Event::late_rank: return "was late";
    case Event::not_a_number: return "had a loss or gradient that is not a number";
    case Event::diverged_replica: return "had other weights than the others";
  }
  return "";
}

}  // namespace

std::string_view to_string(Event event) {
  switch (event) {
    case Event::late_rank: return "late rank";
    case Event::not_a_number: return "NaN";
    case Event::diverged_replica: return "diverged replica";
  }
  return "";
}

std::optional<std::string> Once::say(Event event, Rank rank, std::int64_t step, std::string_view detail) {
  const auto [found, first] = happened_.try_emplace(
      {event, rank}, Happened{.event = event, .rank = rank, .detail = std::string(detail), .first_step = step});
  ++found->second.times;
  found->second.last_step = step;
  if (!first) {
    return std::nullopt;
  }
  return fmt::format("rank {} {} in step {}{}{}", to_int(rank), verb_of(event), step, detail.empty() ? "" : " ",
                     detail);
}

std::vector<std::string> Once::counts() const {
  std::vector<std::string> sentences;
  for (const auto& one : all()) {
    if (one.times > 1) {
      sentences.push_back(fmt::format("rank {} {} {} times, in steps {} to {}", to_int(one.rank), verb_of(one.event),
                                      one.times, one.first_step, one.last_step));
    }
  }
  return sentences;
}

std::vector<Once::Happened> Once::all() const {
  std::vector<Happened> events;
  for (const auto& [key, one] : happened_) {
    events.push_back(one);
  }
  std::stable_sort(events.begin(), events.end(),
                   [](const Happened& a, const Happened& b) { return a.first_step < b.first_step; });
  return events;
}

}  // namespace tutti::train
