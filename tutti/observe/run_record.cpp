#include "tutti/observe/run_record.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tutti/base/error.h"
#include "tutti/observe/step_table.h"
#include "tutti/observe/stragglers.h"
#include "tutti/observe/timelines.h"
#include "tutti/observe/values.h"

namespace tutti::observe {
namespace {

using nlohmann::json;

constexpr std::int64_t kFirstTimelines = 3;
constexpr std::int64_t kSpreadTimelines = 20;  // with the first, no more than RecordLimits keeps
constexpr std::int64_t kTimelineEvery = 100;   // where nobody knows how long it will take

using Bytes = std::vector<std::int64_t>;

struct Traffic {
  std::int64_t calls = 0;
  std::int64_t bytes = 0;
};

void keep_most(Bytes& most, Bytes bytes) {
  for (std::size_t rank = 0; rank < most.size(); ++rank) {
    bytes[rank] = std::max(bytes[rank], most[rank]);
  }
  most = std::move(bytes);
}

bool same(const RunEvent& a, const RunEvent& b) {
  return std::tie(a.step, a.rank, a.kind, a.text) == std::tie(b.step, b.rank, b.kind, b.text);
}

json event_json(const RunEvent& event) {
  json one{{"kind", event.kind}, {"text", event.text}};
  if (event.step >= 0) {
    one["step"] = event.step;
  }
  if (event.rank >= 0) {
    one["rank"] = event.rank;
  }
  return one;
}

json memory_json(const std::vector<std::pair<std::string, Bytes>>& memory, const Bytes& resident) {
  json columns{{"kind", json::array()}, {"bytes", json::array()}, {"resident_bytes", resident}};
  for (const auto& [kind, bytes] : memory) {
    columns["kind"].push_back(kind);
    columns["bytes"].push_back(bytes);
  }
  return columns;
}

}  // namespace

struct RunRecord::Kept {
  Kept(int count, const RecordLimits& most)
      : ranks(count),
        limits(most),
        steps(most.steps),
        evaluation(most.steps),
        timelines(most.timelines),
        stragglers(count) {}

  int ranks;
  RecordLimits limits;
  StepTable steps;
  EvaluationTable evaluation;
  Timelines timelines;
  Stragglers stragglers;
  std::vector<RunEvent> events;
  std::int64_t more_events = 0;
  std::map<std::pair<std::string, std::string>, Traffic> traffic;  // by operation and axis
  std::vector<std::pair<std::string, Bytes>> memory;               // in the order that the kinds were told in
  Bytes resident;
  json fields = json::object();
};

RunRecord::RunRecord(int ranks, const RecordLimits& limits) {
  require(ranks > 0, "a run has ranks");
  kept_ = std::make_unique<Kept>(ranks, limits);
}

RunRecord::RunRecord(RunRecord&&) noexcept = default;
RunRecord& RunRecord::operator=(RunRecord&&) noexcept = default;
RunRecord::~RunRecord() = default;

void RunRecord::step(const StepFigures& figures, std::span<const RankTimes> ranks) {
  require(ranks.size() == static_cast<std::size_t>(kept_->ranks), "a step is of all ranks");
  kept_->steps.add(figures, ranks);
  kept_->stragglers.count(ranks);
}

void RunRecord::evaluation(std::int64_t step, double loss) { kept_->evaluation.add(step, loss); }

void RunRecord::event(RunEvent event) {
  auto& events = kept_->events;
  if (std::any_of(events.begin(), events.end(), [&](const RunEvent& other) { return same(event, other); })) {
    return;
  }
  if (events.size() == kept_->limits.events) {
    ++kept_->more_events;
    return;
  }
  events.push_back(std::move(event));
}

void RunRecord::traffic(const std::string& operation, const std::string& axis, std::int64_t calls, std::int64_t bytes) {
  auto& total = kept_->traffic[{operation, axis}];
  total.calls += calls;
  total.bytes += bytes;
}

void RunRecord::memory(const std::string& kind, std::vector<std::int64_t> bytes_by_rank) {
  require(bytes_by_rank.size() == static_cast<std::size_t>(kept_->ranks), "memory is told of all ranks");
  auto& memory = kept_->memory;
  auto found = std::find_if(memory.begin(), memory.end(), [&](const auto& one) { return one.first == kind; });
  if (found == memory.end()) {
    found = memory.insert(memory.end(), {kind, {}});
  }
  keep_most(found->second, std::move(bytes_by_rank));
}

void RunRecord::resident(std::vector<std::int64_t> bytes_by_rank) {
  require(bytes_by_rank.size() == static_cast<std::size_t>(kept_->ranks), "memory is told of all ranks");
  keep_most(kept_->resident, std::move(bytes_by_rank));
}

void RunRecord::timeline(std::int64_t step, std::vector<RankTimeline> ranks) {
  kept_->timelines.add(step, std::move(ranks));
}

void RunRecord::set(const std::string& field, nlohmann::json value) { kept_->fields[field] = std::move(value); }

nlohmann::json RunRecord::to_json() const {
  auto run = kept_->fields;
  run["format"] = kFormat;
  run["ranks"] = kept_->ranks;
  run["steps"] = kept_->steps.to_json();
  run["evaluation"] = kept_->evaluation.to_json();
  run["stragglers"] = kept_->stragglers.to_json();
  run["memory"] = memory_json(kept_->memory, kept_->resident);
  kept_->timelines.put_into(run);

  auto& events = run["events"] = json::array();
  for (const auto& event : kept_->events) {
    events.push_back(event_json(event));
  }
  if (kept_->more_events > 0) {
    events.push_back({{"kind", "more events"}, {"text", fmt::format("{} more were not kept.", kept_->more_events)}});
  }

  json traffic;
  for (const auto* name : {"operation", "axis", "calls", "bytes"}) {
    traffic[name] = json::array();
  }
  for (const auto& [key, total] : kept_->traffic) {
    traffic["operation"].push_back(key.first);
    traffic["axis"].push_back(key.second);
    traffic["calls"].push_back(total.calls);
    traffic["bytes"].push_back(total.bytes);
  }
  run["traffic"] = std::move(traffic);
  return writable(run);
}

bool wants_timeline(std::int64_t step, std::int64_t steps) {
  if (step <= kFirstTimelines) {
    return true;
  }
  if (steps < 1) {
    return step % kTimelineEvery == 0;
  }
  // Where the share of the run that is over passes a twentieth; the last step always does.
  return step * kSpreadTimelines / steps != (step - 1) * kSpreadTimelines / steps;
}

}  // namespace tutti::observe
