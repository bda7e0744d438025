#include "tutti/observe/trace.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tutti/observe/timeline_reader.h"

namespace tutti::observe {
namespace {

using nlohmann::json;

constexpr double kGapMs = 1;  // between recorded steps
constexpr std::int64_t kComputation = 0;
constexpr double kMicrosecondsPerMs = 1000;

/// Whole nanoseconds: a sum of doubles would be written with sixteen digits.
double microseconds(double ms) { return std::round(ms * kMicrosecondsPerMs * 1000) / 1000; }

struct Extent {
  double begin_ms = 0;
  double end_ms = 0;
};

Extent extent_of(const ReadTimeline& timeline) {
  Extent extent;
  const auto cover = [&](double begin_ms, double end_ms) {
    extent.begin_ms = std::min(extent.begin_ms, begin_ms);
    extent.end_ms = std::max(extent.end_ms, end_ms);
  };
  for (const auto& rank : timeline.ranks) {
    for (const auto& phase : rank.phases) {
      cover(phase.begin_ms, phase.end_ms);
    }
    for (const auto& bucket : rank.buckets) {
      cover(bucket.begin_ms, bucket.end_ms);
    }
  }
  return extent;
}

/// For each bucket a lane in which nothing else is in flight meanwhile; as few lanes as that needs.
std::vector<std::size_t> lanes_of(const std::vector<ReadBucket>& buckets) {
  std::vector<std::size_t> order(buckets.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return buckets[a].begin_ms < buckets[b].begin_ms; });
  std::vector<std::size_t> lanes(buckets.size());
  std::vector<double> free_at;
  for (const auto i : order) {
    const auto free =
        std::find_if(free_at.begin(), free_at.end(), [&](double at) { return at <= buckets[i].begin_ms; });
    lanes[i] = static_cast<std::size_t>(free - free_at.begin());
    if (free == free_at.end()) {
      free_at.push_back(0);
    }
    free_at[lanes[i]] = buckets[i].end_ms;
  }
  return lanes;
}

class Writer {
 public:
  void name_process(std::int64_t process, const std::string& name, std::int64_t place) {
    name_it("process", process, 0, name, place);
  }
  void name_thread(std::int64_t process, std::int64_t thread, const std::string& name) {
    name_it("thread", process, thread, name, thread);
  }

  void rank(const ReadRank& rank, double offset_ms) {
    auto& threads = threads_[rank.rank];
    for (const auto& phase : rank.phases) {
      complete(rank.rank, kComputation, phase.name, offset_ms + phase.begin_ms, phase.end_ms - phase.begin_ms);
    }
    const auto lanes = lanes_of(rank.buckets);
    for (std::size_t i = 0; i < lanes.size(); ++i) {
      const auto& bucket = rank.buckets[i];
      threads = std::max(threads, lanes[i] + 1);
      auto& event = complete(rank.rank, kComputation + 1 + static_cast<std::int64_t>(lanes[i]),
                             fmt::format("bucket {}", bucket.bucket), offset_ms + bucket.begin_ms,
                             bucket.end_ms - bucket.begin_ms);
      event["args"] = json::object();
      if (bucket.bytes) {
        event["args"]["bytes"] = *bucket.bytes;
      }
      if (bucket.ready_ms) {
        event["args"]["waited_ms"] = std::round((bucket.begin_ms - *bucket.ready_ms) * 1000) / 1000;
      }
    }
  }

  json& complete(std::int64_t process, std::int64_t thread, const std::string& name, double begin_ms, double ms) {
    events_.push_back({{"ph", "X"},
                       {"pid", process},
                       {"tid", thread},
                       {"name", name},
                       {"ts", microseconds(begin_ms)},
                       {"dur", microseconds(ms)}});
    return events_.back();
  }

  /// Ranks, and of each how many lanes it had.
  const std::map<std::int64_t, std::size_t>& threads() const { return threads_; }
  json take() { return std::move(events_); }

 private:
  void name_it(const std::string& what, std::int64_t process, std::int64_t thread, const std::string& name,
               std::int64_t place) {
    for (const auto& [kind, arguments] : {std::pair(what + "_name", json{{"name", name}}),
                                          std::pair(what + "_sort_index", json{{"sort_index", place}})}) {
      events_.push_back({{"ph", "M"}, {"pid", process}, {"tid", thread}, {"name", kind}, {"args", arguments}});
    }
  }

  json events_ = json::array();
  std::map<std::int64_t, std::size_t> threads_;
};

void name_all(Writer& writer, std::int64_t steps_process) {
  writer.name_process(steps_process, "steps", -1);
  writer.name_thread(steps_process, kComputation, "recorded steps");
  for (const auto& [rank, lanes] : writer.threads()) {
    writer.name_process(rank, fmt::format("rank {}", rank), rank);
    writer.name_thread(rank, kComputation, "computation");
    for (std::size_t lane = 1; lane <= lanes; ++lane) {
      writer.name_thread(rank, static_cast<std::int64_t>(lane), fmt::format("in flight {}", lane));
    }
  }
}

}  // namespace

Result<nlohmann::json> trace_of(const nlohmann::json& run) {
  const auto timelines = read_timelines(run);
  if (timelines.empty()) {
    return Error{Code::not_found, "the run has no timelines, of which a trace could be made"};
  }
  std::int64_t steps_process = 0;  // a number that no rank has
  for (const auto& timeline : timelines) {
    for (const auto& rank : timeline.ranks) {
      steps_process = std::max(steps_process, rank.rank + 1);
    }
  }
  Writer writer;
  double at_ms = 0;
  for (const auto& timeline : timelines) {
    const auto [begin_ms, end_ms] = extent_of(timeline);
    writer.complete(steps_process, kComputation, fmt::format("step {}", timeline.step), at_ms, end_ms - begin_ms);
    for (const auto& rank : timeline.ranks) {
      writer.rank(rank, at_ms - begin_ms);
    }
    at_ms += end_ms - begin_ms + kGapMs;
  }
  name_all(writer, steps_process);
  return json{{"traceEvents", writer.take()}, {"displayTimeUnit", "ms"}};
}

}  // namespace tutti::observe
