#include "train/step_news.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "tutti/base/error.h"

namespace tutti::train {
namespace {

using observe::RankTimes;

constexpr std::array kTimes{&RankTimes::begin_ms,  &RankTimes::arrived_ms,    &RankTimes::step,
                            &RankTimes::forward,   &RankTimes::backward,      &RankTimes::exposed,
                            &RankTimes::optimizer, &RankTimes::communication, &RankTimes::hidden};
constexpr std::size_t kBeforeLosses = kTimes.size() + 2;

/// What a phase is called, by number: names do not travel.
constexpr std::array<std::string_view, 5> kPhases{"data", "forward", "backward", "wait", "optimizer"};
constexpr std::size_t kPhaseNumbers = 3;
constexpr std::size_t kBucketNumbers = 4;
constexpr std::size_t kPhasesOfAPass = 3;
constexpr std::size_t kOtherPhases = 3;  // before the passes, and after them: wait, optimizer

double number_of(std::string_view phase) {
  const auto* const found = std::find(kPhases.begin(), kPhases.end(), phase);
  require(found != kPhases.end(), "a phase has one of the names that there are");
  return static_cast<double>(found - kPhases.begin());
}

}  // namespace

std::size_t StepNews::row_length(std::size_t passes) { return kBeforeLosses + passes; }

std::vector<double> StepNews::row(std::size_t passes) const {
  require(losses.size() <= passes, "a rank makes no more passes than it may");
  std::vector<double> row;
  row.reserve(row_length(passes));
  for (const auto member : kTimes) {
    row.push_back(times.*member);
  }
  row.push_back(wants_to_stop ? 1 : 0);
  row.push_back(static_cast<double>(losses.size()));
  row.insert(row.end(), losses.begin(), losses.end());
  row.resize(row_length(passes));
  return row;
}

StepNews StepNews::from_row(std::span<const double> row) {
  StepNews news;
  for (std::size_t i = 0; i < kTimes.size(); ++i) {
    news.times.*kTimes[i] = row[i];
  }
  news.wants_to_stop = row[kTimes.size()] != 0;
  const auto losses = row.subspan(kBeforeLosses, static_cast<std::size_t>(row[kTimes.size() + 1]));
  news.losses.assign(losses.begin(), losses.end());
  return news;
}

double mean_loss(std::span<const StepNews> ranks) {
  double sum = 0;
  std::size_t passes = 0;
  for (std::size_t turn = 0; turn < ranks.front().losses.size(); ++turn) {
    for (const auto& rank : ranks) {
      if (turn < rank.losses.size()) {
        sum += rank.losses[turn];
        ++passes;
      }
    }
  }
  // No loss is below 0; but what is no number may have a sign, and would be shown with it.
  return std::abs(sum / static_cast<double>(passes));
}

std::vector<double> timeline_row(const observe::RankTimeline& timeline, std::size_t passes, std::size_t buckets) {
  const auto phases = kPhasesOfAPass * passes + kOtherPhases;
  require(timeline.phases.size() <= phases && timeline.buckets.size() == buckets, "a timeline has its length");
  std::vector<double> row{static_cast<double>(timeline.phases.size()), static_cast<double>(buckets)};
  for (const auto& phase : timeline.phases) {
    row.insert(row.end(), {number_of(phase.name), phase.begin_ms, phase.end_ms});
  }
  for (const auto& bucket : timeline.buckets) {
    row.insert(row.end(), {static_cast<double>(bucket.bytes), bucket.ready_ms, bucket.begin_ms, bucket.end_ms});
  }
  row.resize(2 + kPhaseNumbers * phases + kBucketNumbers * buckets);
  return row;
}

observe::RankTimeline timeline_from_row(int rank, std::span<const double> row) {
  observe::RankTimeline timeline{.rank = rank, .phases = {}, .buckets = {}};
  const auto phases = static_cast<std::size_t>(row[0]);
  const auto buckets = static_cast<std::size_t>(row[1]);
  for (auto rest = row.subspan(2, kPhaseNumbers * phases); !rest.empty(); rest = rest.subspan(kPhaseNumbers)) {
    timeline.phases.push_back(
        {.name = std::string(kPhases[static_cast<std::size_t>(rest[0])]), .begin_ms = rest[1], .end_ms = rest[2]});
  }
  for (auto rest = row.subspan(2 + kPhaseNumbers * phases, kBucketNumbers * buckets); !rest.empty();
       rest = rest.subspan(kBucketNumbers)) {
    timeline.buckets.push_back(
        {.bytes = static_cast<std::int64_t>(rest[0]), .ready_ms = rest[1], .begin_ms = rest[2], .end_ms = rest[3]});
  }
  return timeline;
}

}  // namespace tutti::train
