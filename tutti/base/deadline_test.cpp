#include "tutti/base/deadline.h"

#include <gtest/gtest.h>

namespace tutti {
namespace {

using std::chrono::milliseconds;

TEST(Deadline, NeverStaysNever) {
  EXPECT_FALSE(Deadline::never().expired());
  EXPECT_EQ(Deadline::never().poll_timeout_ms(), -1);
}

TEST(Deadline, PassesAndStaysPassed) {
  const auto deadline = Deadline::after(milliseconds(0));
  EXPECT_TRUE(deadline.expired());
  EXPECT_EQ(deadline.remaining().count(), 0);
  EXPECT_EQ(deadline.poll_timeout_ms(), 0);
}

TEST(Deadline, PollRoundsUp) {
  const auto deadline = Deadline::after(std::chrono::microseconds(4'900'001));
  EXPECT_GT(deadline.poll_timeout_ms(), 1000);
  EXPECT_LE(deadline.poll_timeout_ms(), 4'901);
}

TEST(Deadline, ALongOneMayBeLateByATickButNeverEarly) {
  const auto before = Deadline::Clock::now();
  const auto deadline = Deadline::after(std::chrono::seconds(90));
  EXPECT_GE(deadline.at(), before + std::chrono::seconds(90));
  EXPECT_LE(deadline.at(), Deadline::Clock::now() + std::chrono::milliseconds(90'011));
}

TEST(Deadline, BeyondTheClockIsNever) {
  EXPECT_TRUE(Deadline::after(Deadline::Clock::duration::max()).is_never());
  EXPECT_TRUE(Deadline::after(milliseconds::max()).is_never());
  EXPECT_TRUE(Deadline::after(std::chrono::hours(24 * 365 * 400)).is_never());
  EXPECT_TRUE(Deadline::after(milliseconds::min()).expired());
}

TEST(Deadline, ZeroIsNowOrNever) {
  EXPECT_TRUE(Deadline::after(milliseconds(0)).expired());
  EXPECT_TRUE(Deadline::after_or_never(milliseconds(0)).is_never());
  EXPECT_FALSE(Deadline::after_or_never(milliseconds(1)).is_never());
}

}  // namespace
}  // namespace tutti
