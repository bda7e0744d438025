#include "tutti/observe/timelines.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include <nlohmann/json.hpp>

#include "tutti/observe/values.h"

namespace tutti::observe {
namespace {

using nlohmann::json;

/// Gives buckets their numbers.
class Numbers {
 public:
  /// Of the first of these buckets; the others follow.
  std::size_t first_of(const std::vector<BucketTimes>& buckets) {
    std::vector<std::int64_t> layout;
    for (const auto& bucket : buckets) {
      layout.push_back(bucket.bytes);
    }
    const auto [known, is_new] = first_.try_emplace(layout, bytes_.size());
    if (is_new) {
      bytes_.insert(bytes_.end(), layout.begin(), layout.end());
    }
    return known->second;
  }
  const std::vector<std::int64_t>& bytes() const { return bytes_; }

 private:
  std::map<std::vector<std::int64_t>, std::size_t> first_;
  std::vector<std::int64_t> bytes_;
};

/// When the first rank began: with its first phase, or, where no phase is known, when its first bucket was ready.
double begin_of(const std::vector<RankTimeline>& ranks) {
  const double none = std::numeric_limits<double>::infinity();
  double phase_begin = none;
  double bucket_ready = none;
  for (const auto& rank : ranks) {
    for (const auto& phase : rank.phases) {
      phase_begin = std::fmin(phase_begin, phase.begin_ms);
    }
    for (const auto& bucket : rank.buckets) {
      bucket_ready = std::fmin(bucket_ready, bucket.ready_ms);
    }
  }
  return std::isfinite(phase_begin) ? phase_begin : bucket_ready;
}

json columns_of(std::initializer_list<const char*> names) {
  json columns = json::object();
  for (const auto* name : names) {
    columns[name] = json::array();
  }
  return columns;
}

json rank_json(const RankTimeline& rank, double origin, std::size_t first_bucket) {
  auto phases = columns_of({"name", "begin_ms", "end_ms"});
  for (const auto& phase : rank.phases) {
    phases["name"].push_back(phase.name);
    phases["begin_ms"].push_back(thousandths(phase.begin_ms - origin));
    phases["end_ms"].push_back(thousandths(phase.end_ms - origin));
  }
  auto buckets = columns_of({"bucket", "ready_ms", "begin_ms", "end_ms"});
  for (const auto& bucket : rank.buckets) {
    buckets["bucket"].push_back(first_bucket++);
    buckets["ready_ms"].push_back(thousandths(bucket.ready_ms - origin));
    buckets["begin_ms"].push_back(thousandths(bucket.begin_ms - origin));
    buckets["end_ms"].push_back(thousandths(bucket.end_ms - origin));
  }
  return {{"rank", rank.rank}, {"phases", std::move(phases)}, {"buckets", std::move(buckets)}};
}

}  // namespace

void Timelines::add(std::int64_t step, std::vector<RankTimeline> ranks) {
  kept_[thinning_.next()] = {step, std::move(ranks)};
}

void Timelines::put_into(nlohmann::json& run) const {
  Numbers numbers;
  auto timelines = json::array();
  for (const auto slot : thinning_.slots()) {
    const auto& [step, ranks] = kept_[slot];
    const double origin = begin_of(ranks);
    auto rows = json::array();
    for (const auto& rank : ranks) {
      rows.push_back(rank_json(rank, origin, numbers.first_of(rank.buckets)));
    }
    timelines.push_back({{"step", step}, {"ranks", std::move(rows)}});
  }
  run["timelines"] = std::move(timelines);
  run["bucket_bytes"] = numbers.bytes();
}

}  // namespace tutti::observe
