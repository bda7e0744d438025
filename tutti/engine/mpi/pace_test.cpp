#include "tutti/engine/mpi/pace.h"

#include <gtest/gtest.h>

namespace tutti::engine::mpi {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kMebibyte = std::size_t{1} << 20;

void receive(Pace& pace, int begin, int end, std::size_t bytes) {
  pace.begin(Pace::Time(milliseconds(begin)));
  pace.end(Pace::Time(milliseconds(end)), bytes);
}

TEST(Pace, IsNotSlowBeforeItIsKnown) {
  Pace pace;
  EXPECT_FALSE(pace.is_slow());
  receive(pace, 0, 100, 2 * kMebibyte);
  EXPECT_FALSE(pace.is_slow());
  receive(pace, 100, 200, 2 * kMebibyte);
  EXPECT_TRUE(pace.is_slow());
}

TEST(Pace, TimeBetweenMessagesDoesNotCount) {
  Pace pace;
  for (int i = 0; i < 8; ++i) {
    receive(pace, 1000 * i, 1000 * i + 1, kMebibyte);
  }
  EXPECT_FALSE(pace.is_slow());
}

TEST(Pace, MessagesAtOnceCountTogether) {
  Pace pace;
  for (int i = 0; i < 8; ++i) {  // 8 MiB in 16 ms: 524 MB/s, of each alone 65
    pace.begin(Pace::Time(milliseconds(0)));
  }
  for (int i = 0; i < 8; ++i) {
    pace.end(Pace::Time(milliseconds(16)), kMebibyte);
  }
  EXPECT_FALSE(pace.is_slow());
}

TEST(Pace, StaysInBetween) {
  Pace pace;
  receive(pace, 0, 24, 4 * kMebibyte);  // 175 MB/s
  EXPECT_FALSE(pace.is_slow());
  receive(pace, 0, 36, 4 * kMebibyte);  // 117 MB/s: 1 Gbit/s
  EXPECT_TRUE(pace.is_slow());
  receive(pace, 0, 24, 4 * kMebibyte);
  EXPECT_TRUE(pace.is_slow());
  receive(pace, 0, 12, 4 * kMebibyte);
  EXPECT_FALSE(pace.is_slow());
}

}  // namespace
}  // namespace tutti::engine::mpi
