#include "tutti/observe/joined.h"

#include <algorithm>
#include <limits>

#include <nlohmann/json.hpp>

namespace tutti::observe {
namespace {

using nlohmann::json;

/// Every second row goes until there are no more than that; the last stays.
void thin(json& rows, std::size_t most) {
  while (rows.size() > most) {
    auto kept = json::array();
    for (std::size_t i = (rows.size() + 1) % 2; i < rows.size(); i += 2) {
      kept.push_back(std::move(rows[i]));
    }
    rows = std::move(kept);
  }
}

/// The first of the steps that a table has.
std::int64_t first_step(const json& columns) {
  const auto& steps = columns.at("step");
  return steps.empty() ? std::numeric_limits<std::int64_t>::max() : steps.front().get<std::int64_t>();
}

/// Rows of `before`, up to a step, then those of `now`: the columns that both have.
json join_columns(const json& before, const json& now, std::int64_t until, std::size_t most) {
  const auto& steps = before.at("step");
  const auto count =
      std::count_if(steps.begin(), steps.end(), [&](const json& step) { return step.get<std::int64_t>() < until; });
  auto all = json::object();
  for (const auto& [name, column] : now.items()) {
    const auto& old = before.at(name);
    auto rows = json::array();
    for (std::ptrdiff_t i = 0; i < count; ++i) {
      rows.push_back(old.at(static_cast<std::size_t>(i)));
    }
    rows.insert(rows.end(), column.begin(), column.end());
    thin(rows, most);
    all[name] = std::move(rows);
  }
  return all;
}

/// Buckets of `now` get numbers behind those of `before`.
void join_timelines(const json& before, json& now, std::int64_t until, std::size_t most) {
  auto timelines = json::array();
  for (const auto& timeline : before.at("timelines")) {
    if (timeline.at("step").get<std::int64_t>() < until) {
      timelines.push_back(timeline);
    }
  }
  auto bytes = before.at("bucket_bytes");
  const auto known = bytes.size();
  for (auto& timeline : now.at("timelines")) {
    for (auto& rank : timeline.at("ranks")) {
      for (auto& bucket : rank.at("buckets").at("bucket")) {
        bucket = bucket.get<std::size_t>() + known;
      }
    }
    timelines.push_back(std::move(timeline));
  }
  const auto& more = now.at("bucket_bytes");
  bytes.insert(bytes.end(), more.begin(), more.end());
  thin(timelines, most);
  now["timelines"] = std::move(timelines);
  now["bucket_bytes"] = std::move(bytes);
}

void add_traffic(const json& before, json& now) {
  for (std::size_t i = 0; i < before.at("operation").size(); ++i) {
    std::size_t same = 0;
    const auto is_same = [&](const char* name) { return now.at(name).at(same) == before.at(name).at(i); };
    while (same < now.at("operation").size() && !(is_same("operation") && is_same("axis"))) {
      ++same;
    }
    const bool is_new = same == now.at("operation").size();
    for (const auto* name : {"operation", "axis", "calls", "bytes"}) {
      if (is_new) {
        now.at(name).push_back(before.at(name).at(i));
      } else if (now.at(name).at(same).is_number()) {
        now.at(name).at(same) = now.at(name).at(same).get<std::int64_t>() + before.at(name).at(i).get<std::int64_t>();
      }
    }
  }
}

void add_stragglers(const json& before, json& now) {
  for (std::size_t rank = 0; rank < now.at("rank").size(); ++rank) {
    for (const auto* name : {"times_last", "late_ms"}) {
      auto& sum = now.at(name).at(rank);
      const auto& old = before.at(name).at(rank);
      sum = sum.is_number_integer() ? json(sum.get<std::int64_t>() + old.get<std::int64_t>())
                                    : json(sum.get<double>() + old.get<double>());
    }
    auto& most = now.at("most_late_ms").at(rank);
    most = std::max(most.get<double>(), before.at("most_late_ms").at(rank).get<double>());
  }
}

void join_events(const json& before, json& now, std::int64_t until, std::size_t most) {
  auto events = json::array();
  for (const auto& event : before) {
    if (!event.contains("step") || event.at("step").get<std::int64_t>() < until) {
      events.push_back(event);
    }
  }
  events.insert(events.end(), now.begin(), now.end());
  while (events.size() > most) {
    events.erase(events.size() - 1);
  }
  now = std::move(events);
}

json join(const json& before, json now, const RecordLimits& limits) {
  const auto until = first_step(now.at("steps"));
  now["steps"] = join_columns(before.at("steps"), now.at("steps"), until, limits.steps);
  now["evaluation"] = join_columns(before.at("evaluation"), now.at("evaluation"), until, limits.steps);
  join_timelines(before, now, until, limits.timelines);
  add_traffic(before.at("traffic"), now.at("traffic"));
  join_events(before.at("events"), now.at("events"), until, limits.events);
  if (before.at("ranks") == now.at("ranks")) {
    add_stragglers(before.at("stragglers"), now.at("stragglers"));
  }
  now["duration_s"] = before.at("duration_s").get<double>() + now.at("duration_s").get<double>();
  now["started"] = before.at("started");
  return now;
}

}  // namespace

nlohmann::json joined(const nlohmann::json& before, nlohmann::json now, const RecordLimits& limits) {
  try {
    return join(before, now, limits);
  } catch (const json::exception&) {
    return now;
  }
}

}  // namespace tutti::observe
