#include "tutti/engine/progress.h"

#include <future>

#include <gtest/gtest.h>

#include "tutti/engine/test_ranks.h"

namespace tutti::engine {
namespace {

/// Runs on progress objects instead of bare engines.
void run_progress(int ranks, const std::function<void(Progress&)>& function) {
  LocalMemories memories;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      Progress progress(make_local_engine(memories, "test", Rank{rank}, ranks).value());
      function(progress);
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
}

TEST(Progress, RunsInOrderWhileTheCallerGoesOn) {
  run_progress(3, [](Progress& progress) {
    constexpr int kCalls = 201;
    std::vector<std::vector<float>> values(kCalls, std::vector<float>{1.0F});
    std::vector<int> order;
    std::promise<void> all_done;
    for (int i = 0; i < kCalls; ++i) {
      auto& value = values[static_cast<std::size_t>(i)];
      progress.submit(
          {.op = Op::all_reduce, .dtype = kernels::DType::float32, .in = {bytes_of(value)}, .out = {writable(value)}},
          soon(), [&, i](const Status& status) {
            EXPECT_TRUE(status.ok());
            order.push_back(i);
            if (i == kCalls - 1) {
              all_done.set_value();
            }
          });
    }
    all_done.get_future().wait();
    for (int i = 0; i < kCalls; ++i) {
      EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
      EXPECT_EQ(values[static_cast<std::size_t>(i)][0], 3.0F);
    }
  });
}

TEST(Progress, ClosingAfterTheEndBreaksNothing) {
  for (int round = 0; round < 301; ++round) {
    LocalMemories memories;
    std::vector<std::jthread> ranks;
    for (int rank = 0; rank < 2; ++rank) {
      ranks.emplace_back([&memories, rank] {
        auto progress = std::make_unique<Progress>(make_local_engine(memories, "test", Rank{rank}, 2).value());
        std::promise<Status> ended;
        progress->submit({.op = Op::barrier}, soon(), [&](const Status& status) { ended.set_value(status); });
        EXPECT_TRUE(ended.get_future().get().ok());
        EXPECT_FALSE(progress->engine().broken().has_value());
        progress.reset();
      });
    }
  }
}

TEST(Progress, ClosingEndsWhatIsUnderWay) {
  LocalMemories memories;
  auto ended = std::make_shared<std::promise<Status>>();
  {
    Progress lonely(make_local_engine(memories, "test", Rank{0}, 2).value());
    for (int i = 0; i < 3; ++i) {
      lonely.submit({.op = Op::barrier}, Deadline::never(), [ended, i](const Status& status) {
        EXPECT_FALSE(status.ok());
        if (i == 2) {
          ended->set_value(status);
        }
      });
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  EXPECT_EQ(ended->get_future().get().error().code, Code::aborted);
}

TEST(Progress, WhatIsRunAfterTheEndFails) {
  LocalMemories memories;
  Progress progress(make_local_engine(memories, "test", Rank{0}, 1).value());
  EXPECT_TRUE(progress.run({.op = Op::barrier}, soon()).ok());
  EXPECT_EQ(progress.runs(), 1U);
  progress.close();
  EXPECT_EQ(progress.run({.op = Op::barrier}, soon()).error().code, Code::aborted);
  EXPECT_EQ(progress.runs(), 1U);
  progress.end_pending();  // there is nothing left to end, and nothing left that could
  progress.abort({Code::aborted, "too late"});
  progress.close();
  EXPECT_FALSE(progress.on_own_thread());
}

TEST(Progress, StoppedByACallback) {
  LocalMemories memories;
  Progress progress(make_local_engine(memories, "test", Rank{0}, 1).value());
  std::promise<void> stopped;
  progress.submit({.op = Op::barrier}, soon(), [&](const Status&) {
    progress.stop();
    stopped.set_value();
  });
  stopped.get_future().wait();
  EXPECT_EQ(progress.run({.op = Op::barrier}, soon()).error().code, Code::aborted);
}

/// Who waits for an operation must not have to wait for another one's callback, which may wait for him.
TEST(Progress, ACallbackHoldsNobodyUp) {
  LocalMemories memories;
  Progress progress(make_local_engine(memories, "test", Rank{0}, 1).value());
  std::mutex mutex;
  std::promise<void> inside;
  std::unique_lock held(mutex);
  progress.submit({.op = Op::barrier}, soon(), [&](const Status&) {
    inside.set_value();
    const std::scoped_lock wanted(mutex);
  });
  inside.get_future().wait();
  EXPECT_TRUE(progress.run({.op = Op::barrier}, soon()).ok());
  held.unlock();
  progress.wait_idle();
}

TEST(Progress, WhatThrowsBreaksTheGroupAndNothingElse) {
  LocalMemories memories;
  Progress progress(make_local_engine(memories, "test", Rank{0}, 1).value());
  EXPECT_FALSE(progress.run([](Engine&) -> Status { throw 7; }).ok());
  EXPECT_FALSE(progress.run({.op = Op::barrier}, soon()).ok());
  progress.close();
}

/// Threads that wait, one that does not, and one that waits for all of them: everything runs once, nobody hangs.
TEST(Progress, ManyThreadsAtOnce) {
  LocalMemories memories;
  Progress progress(make_local_engine(memories, "test", Rank{0}, 1).value());
  constexpr int kCalls = 2003;
  std::atomic<int> ended{0};
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 3; ++thread) {
      threads.emplace_back([&] {
        for (int i = 0; i < kCalls; ++i) {
          EXPECT_TRUE(progress.run({.op = Op::barrier}, soon()).ok());
        }
      });
    }
    threads.emplace_back([&] {
      for (int i = 0; i < kCalls; ++i) {
        progress.submit({.op = Op::barrier}, soon(), [&](const Status& status) { ended += status.ok() ? 1 : 0; });
      }
    });
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        progress.wait_idle();
      }
    });
  }
  progress.wait_idle();
  EXPECT_EQ(ended, kCalls);
  EXPECT_EQ(progress.runs(), 3U * kCalls);
}

TEST(Progress, ClosingWhileOthersRunEndsThem) {
  for (int round = 0; round < 101; ++round) {
    LocalMemories memories;
    Progress lonely(make_local_engine(memories, "test", Rank{0}, 2).value());
    std::jthread caller([&] { EXPECT_FALSE(lonely.run({.op = Op::barrier}, Deadline::never()).ok()); });
    if (round % 2 == 0) {
      std::this_thread::sleep_for(std::chrono::microseconds(50 * round));
    }
    lonely.close();
  }
}

}  // namespace
}  // namespace tutti::engine
