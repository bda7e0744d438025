#pragma once

#include <chrono>
#include <string_view>
#include <vector>

#include "tutti/gradient/step_report.h"
#include "tutti/observe/run_record.h"

namespace tutti::train {

/// Notes what a rank does when, in one step. The clock is that of all processes of a host. One thread.
class StepClock {
 public:
  using Clock = std::chrono::steady_clock;

  /// What was going on ends, and this begins.
  void begin(std::string_view phase, Clock::time_point at = Clock::now());
  /// Of the step.
  void end();

  /// The backward pass that just ended did nothing but wait from `last_ready` on.
  void waited(const StepReport& report);

  observe::RankTimes times() const;
  observe::RankTimeline timeline(int rank) const;

 private:
  double total(std::string_view phase) const;
  void finish(Clock::time_point at);

  std::vector<observe::Phase> phases_;
  StepReport report_ = {};
};

}  // namespace tutti::train
