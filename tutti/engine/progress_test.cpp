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

}  // namespace
}  // namespace tutti::engine
