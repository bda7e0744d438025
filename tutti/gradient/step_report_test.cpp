#include "tutti/gradient/step_report.h"

#include <gtest/gtest.h>

namespace tutti {
namespace {

using std::chrono::milliseconds;

TEST(StepReport, TellsWhatWasHidden) {
  const StepReport::Clock::time_point start{};
  const auto bucket = [&](int started, int reduced) {
    return StepReport::Bucket{.bytes = 1'000'000,
                              .parameters = 3,
                              .ready = start,
                              .started = start + milliseconds(started),
                              .reduced = start + milliseconds(reduced)};
  };
  StepReport report{.step = 7};
  report.last_ready = start + milliseconds(20);
  report.last_reduced = start + milliseconds(25);
  report.waited = milliseconds(5);
  report.in_place = 2'000'000;
  report.buckets = {bucket(2, 8), bucket(4, 10), bucket(15, 25)};  // two overlap, then nothing for 5 ms
  EXPECT_NEAR(report.communication().count(), 0.018, 1e-9);
  EXPECT_NEAR(report.exposed().count(), 0.005, 1e-9);
  EXPECT_NEAR(report.hidden().count(), 0.013, 1e-9);
  EXPECT_EQ(report.text(), "step 7: 3 buckets, 3.0 MB, 2.0 of them in place, 18.00 ms under way, 5.00 ms exposed");
}

}  // namespace
}  // namespace tutti
