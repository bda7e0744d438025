// Blocking operations: on the caller's thread, in order with the others, and without asking for memory.

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <future>
#include <new>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "tutti/comm/backend.h"
#include "tutti/comm/symmetric.h"
#include "tutti/comm/world.h"

namespace {

thread_local std::size_t allocations = 0;

}  // namespace

// Counts what this program asks for; who gives it is the same as ever.
void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) {
    return memory;
  }
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace tutti {
namespace {

using ::testing::HasSubstr;

TEST(Blocking, IsDoneWhenItReturns) {
  run_ranks(3, [](Group& group) {
    const auto at_once = group.blocking();
    auto value = torch::full({1003}, static_cast<float>(to_int(group.rank())));
    auto work = at_once.all_reduce(value);
    EXPECT_TRUE(work.done());
    work.wait();
    EXPECT_TRUE(torch::equal(value, torch::full({1003}, 3.0F)));
    at_once.broadcast(value.zero_(), Rank{2});
    at_once.reduce(value, Rank{1});
    at_once.barrier();
    auto all = torch::empty({3});
    at_once.all_gather(all, torch::full({1}, static_cast<float>(to_int(group.rank()))));
    EXPECT_TRUE(torch::equal(all, torch::arange(3).to(torch::kFloat)));
  });
}

TEST(Blocking, AsksForNoMemory) {
  run_ranks(2, [](Group& group) {
    const auto at_once = group.blocking();
    for (const int64_t count : {2, 1000, 50'000}) {
      auto value = torch::zeros({count});
      at_once.all_reduce(value);
      at_once.broadcast(value, Rank{1});
      at_once.barrier();
      // Who falls asleep because the other is late may ask: on a busy machine some tries see that.
      auto least = allocations + 1;
      for (int i = 0; i < 200; ++i) {
        const auto before = allocations;
        at_once.all_reduce(value, ReduceOp::avg);
        at_once.broadcast(value, Rank{1});
        at_once.barrier();
        least = std::min(least, allocations - before);
      }
      EXPECT_EQ(least, 0U) << count << " elements";
    }
  });
}

TEST(Blocking, KeepsItsPlaceBehindWhatWasStartedBefore) {
  run_ranks(3, [](Group& group) {
    const auto at_once = group.blocking();
    for (int round = 0; round < 50; ++round) {
      auto first = torch::ones({100'003});
      auto second = torch::ones({5});
      auto work = group.all_reduce(first);
      at_once.all_reduce(second, ReduceOp::max);  // another call: out of order it would be a mismatch
      work.wait();
      EXPECT_EQ(first[7].item<float>(), 3.0F);
    }
  });
}

TEST(Blocking, FromACallback) {
  run_ranks(2, [](Group& group) {
    auto first = torch::ones({3});
    auto second = torch::ones({3});
    auto third = torch::ones({3});
    std::promise<void> done;
    auto work = group.all_reduce(first);
    auto behind = group.all_reduce(third);  // is in the queue when the callback waits, or was run before it
    work.future()->addCallback([&](c10::ivalue::Future&) { done.set_value(); });
    done.get_future().wait();
    behind.wait();
    group.blocking().all_reduce(second);
    EXPECT_EQ(second[0].item<float>(), 2.0F);
  });
}

TEST(Blocking, SeveralThreadsOnSeveralGroups) {
  run_ranks(2, [](Group& group) {
    std::vector<Group> groups;
    for (int i = 0; i < 3; ++i) {
      groups.push_back(group.subgroup({Rank{0}, Rank{1}})->blocking());
    }
    std::vector<std::jthread> threads;
    for (auto& each : groups) {
      threads.emplace_back([&each] {
        for (int i = 0; i < 200; ++i) {
          auto value = torch::full({17}, static_cast<float>(i));
          each.all_reduce(value);
          ASSERT_EQ(value[16].item<float>(), 2.0F * static_cast<float>(i));
        }
      });
    }
  });
}

TEST(Blocking, ThrowsWhatWentWrongWithBothCallSites) {
  run_ranks(2, [](Group& group) {
    const auto at_once = group.blocking();
    auto value = torch::ones({group.rank() == Rank{0} ? 3 : 4});
    std::string message;
    try {
      at_once.all_reduce(value);
    } catch (const Exception& exception) {
      message = exception.what();
    }
    EXPECT_THAT(message, HasSubstr("rank 0 calls all_reduce #"));
    EXPECT_THAT(message, HasSubstr("3 elements) at "));
    EXPECT_THAT(message, HasSubstr("blocking_test.cpp:"));
    EXPECT_THAT(message, HasSubstr("rank 1 calls all_reduce #"));
  });
}

TEST(Blocking, ShutdownEndsAnotherThreadsOperation) {
  std::string message;
  try {
    run_ranks(2, [](Group& group) {
      if (group.rank() == Rank{1}) {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        group.process_group()->getDefaultBackend()->shutdown();
        return;
      }
      group.blocking().barrier();
    });
  } catch (const Exception& exception) {
    message = exception.what();
  }
  EXPECT_THAT(message, HasSubstr("rank 1"));
}

TEST(Symmetric, TensorsAreTorchTensorsAndOutliveTheGroup) {
  at::Tensor kept;
  run_ranks(2, [&kept](Group& group) {
    auto tensor = symmetric_empty({3, 5}, torch::kDouble, group);
    EXPECT_EQ(tensor.sizes(), (std::vector<int64_t>{3, 5}));
    EXPECT_TRUE(tensor.is_contiguous());
    EXPECT_TRUE(is_symmetric(tensor, group));
    tensor.fill_(1);
    group.all_reduce(tensor).wait();
    EXPECT_EQ(tensor.sum().item<double>(), 30.0);
    if (group.rank() == Rank{0}) {
      kept = tensor;
    }
    EXPECT_EQ(symmetric_empty({0}, torch::kInt, group).numel(), 0);
  });
  EXPECT_EQ(kept.sum().item<double>(), 30.0);
}

TEST(Symmetric, C10dsDoorLeadsThere) {
  run_ranks(2, [](Group& group) {
    const auto backend = group.process_group()->getDefaultBackend();
    EXPECT_TRUE(backend->supportsTensorAlloc(0));
    auto tensor = backend->allocateTensor(1003, torch::TensorOptions().dtype(torch::kFloat));
    EXPECT_TRUE(is_symmetric(tensor, group));
    EXPECT_NE(backend->getMemAllocator(), nullptr);
    EXPECT_THROW(symmetric_empty({3}, torch::TensorOptions().device(torch::kMeta), group), Exception);
  });
}

}  // namespace
}  // namespace tutti
