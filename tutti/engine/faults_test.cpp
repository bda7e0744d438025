// Ranks that die, stop or leave while others wait for them; memory that cannot be had.

#include <csignal>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tutti/engine/test_ranks.h"

namespace tutti::engine {
namespace {

using kernels::DType;
using ::testing::HasSubstr;

Status sum(Engine& engine, std::vector<float>& values, Deadline deadline = soon()) {
  return engine.run(
      {.op = Op::all_reduce, .dtype = DType::float32, .in = {bytes_of(values)}, .out = {writable(values)}}, deadline);
}

TEST(Faults, EverySurvivorNamesTheRankThatWasKilled) {
  for (const int signal : {SIGKILL, SIGSEGV, SIGABRT}) {
    const auto statuses = run_processes(3, [signal](Engine& engine) {
      auto values = ramp(1003, to_int(engine.rank()));
      ASSERT_TRUE(sum(engine, values).ok());
      if (engine.rank() == Rank{1}) {
        ::signal(signal, SIG_DFL);
        ::raise(signal);
      }
      for (int i = 0; i < 2; ++i) {  // the pending call, and a later one
        const auto status = sum(engine, values);
        ASSERT_FALSE(status.ok());
        EXPECT_EQ(status.error().code, Code::peer_lost);
        EXPECT_EQ(status.error().rank, Rank{1});
        EXPECT_THAT(status.error().message, HasSubstr("all_reduce #3 (sum, float32, 1003 elements): rank 1 (pid "));
      }
    });
    EXPECT_EQ(statuses[0], 0);
    EXPECT_TRUE(WIFSIGNALED(statuses[1]) && WTERMSIG(statuses[1]) == signal);
    EXPECT_EQ(statuses[2], 0);
  }
}

TEST(Faults, KilledInTheMiddleOfALargeSum) {
  for (int delay_us = 0; delay_us < 20'000; delay_us += 1999) {
    const auto statuses = run_processes(2, [delay_us](Engine& engine) {
      auto values = ramp(1 << 21, to_int(engine.rank()));
      std::jthread killer;
      if (engine.rank() == Rank{1}) {
        killer = std::jthread([delay_us] {
          std::this_thread::sleep_for(std::chrono::microseconds(delay_us));
          ::kill(::getpid(), SIGKILL);
        });
      }
      Status status;
      while (status.ok()) {
        status = sum(engine, values);
      }
      EXPECT_EQ(status.error().code, Code::peer_lost) << status.error().message;
    });
    EXPECT_EQ(statuses[0], 0);
  }
}

TEST(Faults, AnEarlyExitIsALostRank) {
  const auto statuses = run_processes(3, [](Engine& engine) {
    if (engine.rank() == Rank{2}) {
      ::_exit(0);
    }
    std::vector<float> values(5);
    const auto status = sum(engine, values);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().rank, Rank{2});
  });
  EXPECT_EQ(statuses, std::vector<int>(3, 0));
}

TEST(Faults, AStoppedRankIsNamedAtTheDeadline) {
  const auto statuses = run_processes(2, [](Engine& engine) {
    std::vector<float> values(5);
    if (engine.rank() == Rank{1}) {
      ::raise(SIGSTOP);
      // Woken by rank 0 after its deadline: fenced off, and told so.
      EXPECT_FALSE(sum(engine, values).ok());
      return;
    }
    std::vector<float> pid(1);
    const auto status = sum(engine, values, Deadline::after(std::chrono::milliseconds(200)));
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code, Code::timed_out);
    EXPECT_THAT(status.error().message, HasSubstr("still missing: rank 1 (pid "));
    const auto at = status.error().message.find("(pid ") + 5;
    ::kill(std::stoi(status.error().message.substr(at)), SIGCONT);
  });
  EXPECT_EQ(statuses, std::vector<int>(2, 0));
}

TEST(Faults, AbortEndsEverybody) {
  for (const auto kind : {Kind::threads, Kind::processes}) {
    run_engines(kind, 3, [](Engine& engine) {
      std::jthread aborter;
      if (engine.rank() == Rank{0}) {
        aborter = std::jthread([&engine] {
          std::this_thread::sleep_for(std::chrono::milliseconds(20));
          engine.abort({Code::aborted, "the user gave up"});
        });
      }
      if (engine.rank() == Rank{2}) {
        while (!engine.broken()) {
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        return;
      }
      const auto status = engine.run({.op = Op::barrier}, soon());
      ASSERT_FALSE(status.ok());
      EXPECT_EQ(status.error().message, "the user gave up");
    });
  }
}

TEST(Faults, AMissingRankFailsTheStart) {
  auto store = rendezvous::make_local_store();
  const auto engine = make_shm_engine(*store, "g", Rank{0}, 2, Deadline::after(std::chrono::milliseconds(50)));
  ASSERT_FALSE(engine.ok());
  EXPECT_EQ(engine.error().code, Code::timed_out);
  EXPECT_THAT(engine.error().message, HasSubstr("only 0 of 1 ranks of this host came"));
  const auto other = make_shm_engine(*store, "h", Rank{1}, 2, Deadline::after(std::chrono::milliseconds(50)));
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().code, Code::timed_out);
}

TEST(Faults, MemoryThatCannotBeHadIsEverybodysError) {
  auto store = rendezvous::make_local_store();
  ASSERT_TRUE(store->set("tutti/shm/g", "no room left", soon()).ok());
  const auto engine = make_shm_engine(*store, "g", Rank{1}, 2, soon());
  ASSERT_FALSE(engine.ok());
  EXPECT_EQ(engine.error().code, Code::resource_exhausted);
  EXPECT_THAT(engine.error().message, HasSubstr("could not make the group's shared memory: room left"));
}

}  // namespace
}  // namespace tutti::engine
