#include "tutti/memory/cores.h"

#include <sched.h>

#include <thread>

#include <gtest/gtest.h>

namespace tutti::memory {
namespace {

TEST(Cores, AreThoseThatTheThreadMayUse) {
  const auto all = Cores::allowed();
  EXPECT_GE(all.count(), 1);
  std::thread([&] {  // one that is bound
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(::sched_getcpu(), &one);
    ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
    auto bound = Cores::allowed();
    EXPECT_EQ(bound.count(), 1);
    EXPECT_EQ((bound |= all).count(), all.count());
  })
      .join();
}

TEST(Cores, OfSeveralTogetherAreCountedOnce) {
  Cores a;
  Cores b;
  a.bits[0] = 0b0110;
  b.bits[0] = 0b1100;
  b.bits[15] = 1;
  EXPECT_EQ((a |= b).count(), 4);
}

}  // namespace
}  // namespace tutti::memory
