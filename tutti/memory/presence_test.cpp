#include "tutti/memory/presence.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tutti/memory/arena.h"

namespace tutti::memory {
namespace {

using ::testing::HasSubstr;

struct Shared {
  Arena arena = Arena::create(4096).value();
  LifeWord& life = *new (arena.data()) LifeWord;
};

/// Waits, up to a generous end, until the word says so.
bool becomes(const LifeWord& life, Presence wanted) {
  for (int i = 0; i < 20000; ++i) {
    if (presence(life) == wanted) {
      return true;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

TEST(Presence, FollowsTheMark) {
  Shared shared;
  EXPECT_EQ(presence(shared.life), Presence::absent);
  {
    const auto mark = LifeMark::hold(shared.life).value();
    EXPECT_EQ(presence(shared.life), Presence::here);
    EXPECT_EQ(shared.life.pid.load(), ::getpid());
  }
  EXPECT_EQ(presence(shared.life), Presence::left);
}

TEST(Presence, APlaceIsTakenOnce) {
  Shared shared;
  const auto mark = LifeMark::hold(shared.life).value();
  const auto second = LifeMark::hold(shared.life);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, Code::refused);
  EXPECT_THAT(second.error().message, HasSubstr(std::to_string(::getpid())));
  EXPECT_EQ(presence(shared.life), Presence::here);
}

TEST(Presence, AKilledProcessHasDied) {
  for (const int signal : {SIGKILL, SIGSEGV, SIGABRT}) {
    Shared shared;
    const pid_t child = ::fork();
    if (child == 0) {
      ::signal(signal, SIG_DFL);
      const auto mark = LifeMark::hold(shared.life);
      ::pause();
      ::_exit(0);
    }
    ASSERT_TRUE(becomes(shared.life, Presence::here));
    ::kill(child, signal);
    EXPECT_TRUE(becomes(shared.life, Presence::died)) << "signal " << signal;
    ::waitpid(child, nullptr, 0);
  }
}

TEST(Presence, AnExitWithoutGoodbyeIsADeath) {
  Shared shared;
  const pid_t child = ::fork();
  if (child == 0) {
    const auto mark = LifeMark::hold(shared.life);
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(becomes(shared.life, Presence::died));
}

TEST(Presence, AForkedChildIsNotTheRank) {
  Shared shared;
  auto mark = LifeMark::hold(shared.life).value();
  const pid_t child = ::fork();
  if (child == 0) {
    mark.reset();
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(presence(shared.life), Presence::here);
}

TEST(Presence, ThreadsMarkThemselves) {
  LifeWord life;
  mark_here(life);
  EXPECT_EQ(presence(life), Presence::here);
  mark_left(life);
  EXPECT_EQ(presence(life), Presence::left);
}

}  // namespace
}  // namespace tutti::memory
