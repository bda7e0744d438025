#include "train/watch.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::train {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

/// Three ranks in a step of 100 ms; the second is late by so much.
std::vector<StepNews> news_of(double late_ms, std::vector<double> losses = {1, 2, 3}) {
  std::vector<StepNews> ranks;
  for (const auto loss : losses) {
    const auto late = ranks.size() == 1 ? late_ms : 0;
    ranks.push_back(
        {.times = {.arrived_ms = 80 + late, .step = 100 + late_ms, .exposed = late_ms - late}, .losses = {loss}});
  }
  return ranks;
}

TEST(Watch, SaysOnceThatARankIsLateForLong) {
  Watch watch(3);
  std::vector<observe::RunEvent> events;
  for (std::int64_t step = 1; step <= 20; ++step) {
    for (auto& event : watch.step(step, news_of(70), 1)) {
      events.push_back(event);
    }
  }
  ASSERT_THAT(events, SizeIs(1));
  EXPECT_EQ(events[0].rank, 1);
  EXPECT_EQ(events[0].step, 5);
  EXPECT_EQ(events[0].kind, "late rank");
  EXPECT_THAT(events[0].text, HasSubstr("rank 1 was late in step 5 by 70 ms"));
  EXPECT_THAT(watch.counts(), SizeIs(1));
}

TEST(Watch, LittleOrSeldomLateIsNoNews) {
  Watch watch(3);
  for (std::int64_t step = 1; step <= 50; ++step) {
    EXPECT_THAT(watch.step(step, news_of(step % 5 == 0 ? 0 : 70), 1), IsEmpty());
    EXPECT_THAT(watch.step(step, news_of(30), 1), IsEmpty());
  }
}

TEST(Watch, NamesTheRankWhoseLossIsNoNumber) {
  Watch watch(3);
  const auto broken = news_of(0, {1, 2, std::nan("")});
  const auto events = watch.step(7, broken, std::nan(""));
  ASSERT_THAT(events, SizeIs(1));
  EXPECT_EQ(events[0].rank, 2);
  EXPECT_THAT(events[0].text, HasSubstr("rank 2 had a loss or gradient that is not a number in step 7 (loss nan)"));
  EXPECT_THAT(watch.step(8, broken, std::nan("")), IsEmpty());
}

TEST(Watch, ANormThatIsNoNumberIsNobodys) {
  Watch watch(3);
  const auto events = watch.step(7, news_of(0), INFINITY);
  ASSERT_THAT(events, SizeIs(1));
  EXPECT_EQ(events[0].rank, -1);
  EXPECT_THAT(events[0].text, HasSubstr("the gradient's norm in step 7 was inf"));
  EXPECT_THAT(watch.step(8, news_of(0), INFINITY), IsEmpty());
}

TEST(Watch, SaysOnceForEachRankThatItDiverged) {
  Watch watch(3);
  const auto event = watch.diverged(50, Rank{1}, "'wte' differs");
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->text, "rank 1 had other weights than the others in step 50 ('wte' differs)");
  EXPECT_FALSE(watch.diverged(100, Rank{1}, "'wte' differs").has_value());
  EXPECT_TRUE(watch.diverged(100, Rank{2}, "'wte' differs").has_value());
}

}  // namespace
}  // namespace tutti::train
