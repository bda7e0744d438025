#include "train/step_clock.h"

#include <algorithm>

namespace tutti::train {
namespace {

double milliseconds(StepClock::Clock::time_point at) {
  return std::chrono::duration<double, std::milli>(at.time_since_epoch()).count();
}

double milliseconds(std::chrono::duration<double> duration) { return 1e3 * duration.count(); }

}  // namespace

void StepClock::finish(Clock::time_point at) {
  if (!phases_.empty()) {
    phases_.back().end_ms = milliseconds(at);
  }
}

void StepClock::begin(std::string_view phase, Clock::time_point at) {
  finish(at);
  phases_.push_back({.name = std::string(phase), .begin_ms = milliseconds(at), .end_ms = milliseconds(at)});
}

void StepClock::end() { finish(Clock::now()); }

void StepClock::waited(const StepReport& report) {
  report_ = report;
  begin("wait", report.last_ready);
}

double StepClock::total(std::string_view phase) const {
  double sum = 0;
  for (const auto& one : phases_) {
    sum += one.name == phase ? one.end_ms - one.begin_ms : 0;
  }
  return sum;
}

observe::RankTimes StepClock::times() const {
  return {.begin_ms = phases_.front().begin_ms,
          .arrived_ms = milliseconds(report_.last_ready),
          .step = phases_.back().end_ms - phases_.front().begin_ms,
          .forward = total("forward"),
          .backward = total("backward"),
          .exposed = total("wait"),
          .optimizer = total("optimizer"),
          .communication = milliseconds(report_.communication()),
          .hidden = milliseconds(std::max(std::chrono::duration<double>(0), report_.hidden()))};
}

observe::RankTimeline StepClock::timeline(int rank) const {
  observe::RankTimeline timeline{.rank = rank, .phases = phases_, .buckets = {}};
  for (const auto& bucket : report_.buckets) {
    timeline.buckets.push_back({.bytes = static_cast<std::int64_t>(bucket.bytes),
                                .ready_ms = milliseconds(bucket.ready),
                                .begin_ms = milliseconds(bucket.started),
                                .end_ms = milliseconds(bucket.reduced)});
  }
  return timeline;
}

}  // namespace tutti::train
