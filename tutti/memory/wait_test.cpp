#include "tutti/memory/wait.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include <gtest/gtest.h>

#include "tutti/memory/arena.h"

namespace tutti::memory {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr auto kNeverGiveUp = [] { return false; };

TEST(Wait, ReturnsAtOnceWhenReady) {
  Bell bell;
  EXPECT_TRUE(wait_until(
      bell, {}, Deadline::after(milliseconds(0)), [] { return true; }, kNeverGiveUp));
}

TEST(Wait, YieldsForAsLongAsItSays) {
  int looks = 0;
  const auto never = [&] {
    ++looks;
    return false;
  };
  EXPECT_FALSE(spin_until(Patience{.spins = 0, .yield_for = milliseconds(50)}, never));
  EXPECT_GT(looks, 3);
}

TEST(Wait, SleepsWhereAYieldTakesLong) {
  int looks = 0;
  const auto never = [&] {
    ++looks;
    std::this_thread::sleep_for(milliseconds(2));  // as if somebody had computed meanwhile
    return false;
  };
  const Patience patience{.spins = 0, .yield_for = seconds(100), .longest_yield = milliseconds(1)};
  EXPECT_FALSE(spin_until(patience, never));
  EXPECT_EQ(looks, 1);
}

TEST(Wait, EndsAtTheDeadline) {
  Bell bell;
  EXPECT_FALSE(wait_until(
      bell, {}, Deadline::after(milliseconds(7)), [] { return false; }, kNeverGiveUp));
  EXPECT_EQ(bell.sleepers.load(), 0U);
}

TEST(Wait, GivesUpWhenToldTo) {
  Bell bell;
  int asked = 0;
  EXPECT_FALSE(wait_until(
      bell, {.spins = 1}, Deadline::never(), [] { return false; }, [&] { return ++asked == 3; }));
  EXPECT_EQ(asked, 3);
}

TEST(Wait, NoRingIsLostBetweenTwoThreads) {
  struct Side {
    Bell bell;
    alignas(64) std::atomic<int> turn{0};
  } left, right;
  constexpr int kRounds = 20011;
  // No look-up within the test: a lost ring would hang it until the deadline.
  const Patience sleepy{.spins = 1, .look_up = seconds(60)};
  const auto play = [&](Side& mine, Side& other) {
    for (int round = 1; round <= kRounds; ++round) {
      mine.turn.store(round, std::memory_order_release);
      ring(other.bell);
      ASSERT_TRUE(wait_until(
          mine.bell, sleepy, Deadline::after(seconds(50)),
          [&] { return other.turn.load(std::memory_order_acquire) >= round; }, kNeverGiveUp));
    }
  };
  std::thread thread([&] { play(left, right); });
  play(right, left);
  thread.join();
}

TEST(Wait, WakesASleeperInAnotherProcess) {
  auto arena = Arena::create(4096).value();
  auto* bell = new (arena.data()) Bell;
  auto* flag = new (arena.data() + 256) std::atomic<int>(0);
  const pid_t child = ::fork();
  if (child == 0) {
    const bool woken = wait_until(
        *bell, {.spins = 1, .look_up = seconds(60)}, Deadline::after(seconds(50)), [&] { return flag->load() == 1; },
        kNeverGiveUp);
    ::_exit(woken ? 0 : 1);
  }
  while (bell->sleepers.load() == 0) {
    std::this_thread::yield();
  }
  flag->store(1);
  ring(*bell);
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(Wait, ASleeperCostsNoCpu) {
  Bell bell;
  const auto cpu = [] {
    rusage usage{};
    ::getrusage(RUSAGE_THREAD, &usage);
    return seconds(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           std::chrono::microseconds(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
  };
  const auto before = cpu();
  (void)wait_until(
      bell, {.spins = 1}, Deadline::after(milliseconds(300)), [] { return false; }, kNeverGiveUp);
  EXPECT_LT(cpu() - before, milliseconds(150));
}

TEST(Patience, MoreRanksThanCoresDoNotSpin) {
  EXPECT_EQ(Patience::for_ranks(3, 2).spins, 1);
  EXPECT_GT(Patience::for_ranks(2, 2).spins, 1);
}

}  // namespace
}  // namespace tutti::memory
