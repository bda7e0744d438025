#include "tutti/rendezvous/rate_limit.h"

#include <gtest/gtest.h>

namespace tutti::rendezvous {
namespace {

TEST(RateLimit, lets_a_few_through_and_counts_the_rest) {
  RateLimit limit(3);
  const auto now = RateLimit::Clock::now();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(limit.allow(now), 0U);
  }
  for (int i = 0; i < 7; ++i) {
    EXPECT_EQ(limit.allow(now + std::chrono::milliseconds(999)), std::nullopt);
  }
  EXPECT_EQ(limit.allow(now + std::chrono::seconds(1)), 7U);
  EXPECT_EQ(limit.allow(now + std::chrono::seconds(1)), 0U);
}

}  // namespace
}  // namespace tutti::rendezvous
