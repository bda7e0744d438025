// What c10d's clients ask of a backend beyond the plain collectives.

#include "tutti/comm/backend.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <future>
#include <set>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/types.h>

#include "tutti/comm/group_factory.h"
#include "tutti/comm/test_complaint.h"
#include "tutti/comm/world.h"

namespace tutti {
namespace {

using ::testing::HasSubstr;

c10::intrusive_ptr<c10d::Backend> backend_of(const Group& group) { return group.process_group()->getDefaultBackend(); }

TEST(BackendTest, PremultipliedSums) {
  run_ranks(3, [](Group& group) {
    auto value = torch::full({5}, 2.0F);
    group.all_reduce(value, premul_sum(0.5 * (1 + to_int(group.rank())))).wait();
    EXPECT_TRUE(torch::equal(value, torch::full({5}, 6.0F)));
    std::vector<at::Tensor> tensors{torch::full({5}, 2.0F)};
    c10d::AllreduceOptions options;
    options.reduceOp = to_c10d(premul_sum(0));
    options.reduceOp.supplement_ = c10::make_intrusive<c10d::NCCLPreMulSumSupplement>(torch::tensor(2.0));
    backend_of(group)->allreduce(tensors, options)->wait();
    EXPECT_TRUE(torch::equal(tensors[0], torch::full({5}, 12.0F)));
    EXPECT_THAT(complaint([&] { group.all_reduce(torch::ones({3}, torch::kInt), premul_sum(2)); }),
                HasSubstr("premul_sum of int32"));
  });
}

TEST(BackendTest, SparseSums) {
  run_ranks(3, [](Group& group) {
    const int me = to_int(group.rank());
    // Rank r has rows 0 and r: row 0 meets three times.
    const auto indices = torch::tensor({0, me}).reshape({1, 2});
    const auto values = torch::full({2, 3}, static_cast<float>(me + 1));
    auto sparse = torch::sparse_coo_tensor(indices, values, {7, 3});
    const auto dense = sparse.to_dense();
    group.all_reduce(sparse).wait();
    auto wanted = torch::zeros({7, 3});
    for (int rank = 0; rank < 3; ++rank) {
      wanted[0] += static_cast<float>(rank + 1);
      wanted[rank] += static_cast<float>(rank + 1);
    }
    EXPECT_TRUE(torch::equal(sparse.to_dense(), wanted));
    auto none = torch::sparse_coo_tensor(torch::empty({1, 0}, torch::kLong), torch::empty({0, 3}), {7, 3});
    group.all_reduce(none, ReduceOp::avg).wait();
    EXPECT_EQ(none._nnz(), 0);
    EXPECT_THAT(complaint([&] { group.all_reduce(sparse, ReduceOp::max); }), HasSubstr("to_dense"));
    auto odd = torch::sparse_coo_tensor(indices, values, {me == 1 ? 8 : 7, 3});
    EXPECT_THAT(complaint([&] { group.all_reduce(odd).wait(); }), HasSubstr("different shapes"));
  });
}

TEST(BackendTest, CoalescedForms) {
  run_ranks(2, [](Group& group) {
    const auto backend = backend_of(group);
    const auto mine = static_cast<float>(to_int(group.rank()) + 1);
    std::vector<at::Tensor> several{torch::full({3}, mine), torch::full({70'001}, 2 * mine)};
    backend->allreduce_coalesced(several, {})->wait();
    EXPECT_EQ(several[0][2].item<float>(), 3.0F);
    EXPECT_EQ(several[1][70'000].item<float>(), 6.0F);

    std::vector<at::Tensor> inputs{torch::full({3}, mine), torch::full({5}, mine)};
    std::vector<at::Tensor> outputs{torch::empty({6}), torch::empty({10})};
    backend->allgather_into_tensor_coalesced(outputs, inputs, {})->wait();
    EXPECT_EQ(outputs[1].sum().item<float>(), 15.0F);
    std::vector<at::Tensor> parts{torch::empty({3}), torch::empty({5})};
    backend->reduce_scatter_tensor_coalesced(parts, outputs, {})->wait();
    EXPECT_TRUE(torch::equal(parts[0], torch::full({3}, 2 * mine)));

    std::vector<std::vector<at::Tensor>> lists(2);
    for (auto& list : lists) {
      list = {torch::empty({3}), torch::empty({5})};
    }
    backend->allgather_coalesced(lists, inputs, {})->wait();
    EXPECT_TRUE(torch::equal(lists[1][1], torch::full({5}, 2.0F)));
  });
}

TEST(BackendTest, CoalescingJoinsWhatIsStartedInBetween) {
  run_ranks(2, [](Group& group) {
    const auto backend = backend_of(group);
    EXPECT_TRUE(backend->supportsCoalescing());
    EXPECT_THAT(complaint([&] { backend->endCoalescing(); }), HasSubstr("not started"));
    auto sum = torch::ones({3});
    auto got = torch::zeros({5});
    const Rank peer{1 - to_int(group.rank())};
    backend->startCoalescing();
    group.all_reduce(sum);
    group.send(torch::full({5}, 7.0F), peer);
    group.receive(got, peer);
    auto all = backend->endCoalescing();
    all->wait();
    EXPECT_TRUE(all->isCompleted() && all->isSuccess());
    EXPECT_EQ(sum[0].item<float>(), 2.0F);
    EXPECT_EQ(got[4].item<float>(), 7.0F);
    all->getFuture()->wait();
  });
}

TEST(BackendTest, ReceivesFromAnybodyAndSaysFromWhom) {
  run_ranks(3, [](Group& group) {
    if (group.rank() == Rank{0}) {
      int seen = 0;
      for (int i = 0; i < 2; ++i) {
        auto got = torch::zeros({3});
        auto work = group.receive_any(got, 5);
        work.wait();
        EXPECT_EQ(got[0].item<float>(), static_cast<float>(to_int(work.source())));
        seen += to_int(work.source());
      }
      EXPECT_EQ(seen, 3);
      return;
    }
    group.send(torch::full({3}, static_cast<float>(to_int(group.rank()))), Rank{0}, 5).wait();
  });
}

TEST(BackendTest, AMonitoredBarrierNamesWhoIsMissing) {
  std::string message;
  try {
    run_ranks(3, [](Group& group) {
      group.monitored_barrier(std::chrono::seconds(30));
      if (group.rank() == Rank{2}) {
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
        return;
      }
      group.monitored_barrier(std::chrono::milliseconds(50));
    });
  } catch (const Exception& exception) {
    message = exception.what();
  }
  EXPECT_THAT(message, HasSubstr("still missing: rank 2"));
}

TEST(BackendTest, WorksTellTheirNumberTheirTimeAndTheirResult) {
  run_ranks(2, [](Group& group) {
    const auto backend = backend_of(group);
    std::atomic<int> told = 0;
    backend->registerOnCompletionHook([&](const std::shared_ptr<c10d::WorkInfo>& info) {
      EXPECT_EQ(info->opType, c10d::OpType::ALLREDUCE);
      ++told;
    });
    std::vector<at::Tensor> tensors{torch::ones({3})};
    const auto before = backend->getSequenceNumberForGroup();
    auto work = backend->allreduce(tensors, {});
    work->wait(std::chrono::seconds(30));
    EXPECT_EQ(work->getSequencenumber(), before + 1);
    EXPECT_GE(work->getDuration(), 0.0F);
    const auto result = work->getFuture()->value().toTensorVector();  // asked for after the end
    EXPECT_EQ(result[0][0].item<float>(), 2.0F);
    EXPECT_EQ(backend->getError(), c10d::ErrorType::SUCCESS);
    backend->waitForPendingWorks();
    EXPECT_EQ(told, 1);
  });
}

TEST(BackendTest, NumbersOfSeveralThreadsAreAllDifferent) {
  run_ranks(1, [](Group& group) {
    auto backend = backend_of(group);
    const auto before = backend->getSequenceNumberForGroup();
    std::vector<std::vector<std::uint64_t>> numbers(3);
    std::vector<std::thread> threads;
    for (auto& own : numbers) {
      threads.emplace_back([&own, &backend] {
        for (int i = 0; i < 50; ++i) {
          std::vector<at::Tensor> tensors{torch::ones({3})};
          auto work = backend->allreduce(tensors, {});
          own.push_back(work->getSequencenumber());
          work->wait(std::chrono::seconds(30));
        }
      });
    }
    std::set<std::uint64_t> all;
    for (std::size_t i = 0; i < threads.size(); ++i) {
      threads[i].join();
      EXPECT_TRUE(std::is_sorted(numbers[i].begin(), numbers[i].end()));
      all.insert(numbers[i].begin(), numbers[i].end());
    }
    EXPECT_EQ(all.size(), 150U);
    EXPECT_EQ(*all.rbegin(), before + 150);
    EXPECT_EQ(backend->getSequenceNumberForGroup(), before + 150);
  });
}

/// What Python does at the end of a process that a rank forked: the groups are the parent's.
TEST(BackendTest, AForkedChildShutsNothingDown) {
  run_ranks(1, [](Group& group) {
    group.barrier().wait();
    const auto child = ::fork();
    if (child == 0) {
      Backend::shut_down_all();
      ::_exit(0);
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    group.barrier().wait();
  });
}

/// As PyTorch's own hooks for DataParallel do it.
TEST(BackendTest, ACallbackMayWaitForAnotherOperation) {
  run_ranks(2, [](Group& group) {
    auto backend = backend_of(group);
    std::vector<at::Tensor> tensors{torch::ones({300'000})};
    std::vector<at::Tensor> others{torch::ones({5})};
    const auto chain = [&](const c10::intrusive_ptr<c10d::Work>& first) {
      return first->getFuture()->then(
          [&](c10::ivalue::Future&) {
            auto second = backend->allreduce(others, {});
            second->getFuture()->wait();
            auto third = backend->allreduce(others, {});
            third->wait(std::chrono::seconds(30));
            return c10::IValue(others[0]);
          },
          c10::TensorType::get());
    };
    auto last = chain(backend->allreduce(tensors, {}));
    last->wait();
    EXPECT_EQ(others[0][0].item<float>(), 4.0F);
    // After a message, too.
    if (group.rank() == Rank{0}) {
      backend->send(tensors, 1, 0)->wait();
      backend->recv(others, 1, 1)->wait();
    } else {
      auto received = backend->recv(tensors, 0, 0);
      auto answered = received->getFuture()->then(
          [&](c10::ivalue::Future&) {
            backend->send(others, 0, 1)->wait(std::chrono::seconds(30));
            return c10::IValue();
          },
          c10::NoneType::get());
      answered->wait();
    }
    backend->waitForPendingWorks();
  });
}

TEST(BackendTest, AHookIsToldOfBlockingOnesAndMayThrow) {
  run_ranks(2, [](Group& group) {
    std::atomic<int> told{0};
    auto backend = backend_of(group);
    backend->registerOnCompletionHook([&](const std::shared_ptr<c10d::WorkInfo>&) {
      ++told;
      throw std::runtime_error("careless");
    });
    std::vector<at::Tensor> tensors{torch::ones({3})};
    c10d::AllreduceOptions blocking;
    blocking.asyncOp = false;
    backend->allreduce(tensors, blocking);
    backend->allreduce(tensors, {})->wait();
    backend->waitForPendingWorks();
    EXPECT_EQ(told, 2);
  });
}

TEST(BackendTest, CoalescingIsAThreadsOwnAndForgetsWhatWasNotEnded) {
  run_ranks(1, [](Group& group) {
    auto backend = backend_of(group);
    backend->startCoalescing();
    std::thread([&] {
      EXPECT_THAT(complaint([&] { backend->endCoalescing(); }), HasSubstr("was not started"));
    }).join();
    backend->startCoalescing();  // something threw in between
    std::vector<at::Tensor> tensors{torch::ones({3})};
    backend->allreduce(tensors, {});
    EXPECT_EQ(backend->endCoalescing()->result().size(), 1U);
  });
}

TEST(BackendTest, InputsThatLieInOutputs) {
  for (const int64_t count : {5, 50'000}) {
    run_ranks(2, [count](Group& group) {
      auto backend = backend_of(group);
      const auto rank = to_int(group.rank());
      for (const bool symmetric : {false, true}) {
        auto x = symmetric ? symmetric_empty({2 * count}, torch::kFloat, group) : torch::empty({2 * count});
        x.narrow(0, 0, count).fill_(10 * rank);
        x.narrow(0, count, count).fill_(10 * rank + 1);
        std::vector<int64_t> even;
        backend->alltoall_base(x, x, even, even, {})->wait();
        EXPECT_EQ(x[0].item<float>(), static_cast<float>(rank));
        EXPECT_EQ(x[2 * count - 1].item<float>(), static_cast<float>(10 + rank));
        // The input lies where the other's goes, and across both.
        x.fill_(rank + 1);
        auto in = x.narrow(0, rank == 0 ? count : 0, count);
        backend->_allgather_base(x, in, {})->wait();
        EXPECT_EQ(x[0].item<float>(), 1.0F);
        EXPECT_EQ(x[2 * count - 1].item<float>(), 2.0F);
        x.fill_(rank + 1);
        auto across = x.narrow(0, count / 2, count);
        backend->_reduce_scatter_base(across, x, {})->wait();
        EXPECT_TRUE(torch::equal(across, torch::full({count}, 3.0F)));
        group.barrier().wait();
      }
    });
  }
}

TEST(BackendTest, SparseMeansOfIntegersAreRefusedAndBreakNothing) {
  run_ranks(2, [](Group& group) {
    auto backend = backend_of(group);
    std::vector<at::Tensor> tensors{torch::eye(3, torch::kLong).to_sparse()};
    c10d::AllreduceOptions average;
    average.reduceOp = c10d::ReduceOp::AVG;
    EXPECT_NE(complaint([&] { backend->allreduce_sparse(tensors, average); }), "no complaint");
    group.barrier().wait();
  });
}

TEST(BackendTest, AbortEndsWhatIsInFlight) {
  std::string message;
  try {
    run_ranks(2, [](Group& group) {
      if (group.rank() == Rank{1}) {
        std::this_thread::sleep_for(std::chrono::milliseconds(30));
        group.abort();
        return;
      }
      auto work = group.all_reduce(torch::ones({3}));
      EXPECT_THAT(complaint([&] { work.wait(); }), HasSubstr("rank 1 aborted the group"));
      EXPECT_NE(backend_of(group)->getError(), c10d::ErrorType::SUCCESS);
      throw Exception({Code::aborted, "seen"});
    });
  } catch (const Exception& exception) {
    message = exception.what();
  }
  EXPECT_THAT(message, HasSubstr("seen"));
}

TEST(BackendTest, AbortOfAWorkEndsItOnAllRanks) {
  run_ranks(2, [](Group& group) {
    auto inner = group.subgroup({Rank{0}, Rank{1}});
    auto backend = backend_of(*inner);
    std::vector<at::Tensor> tensors{torch::ones({3})};
    auto over = backend->allreduce(tensors, {});
    over->wait(std::chrono::seconds(30));
    over->abort();  // too late to matter
    inner->barrier().wait();
    group.barrier().wait();
    if (group.rank() == Rank{0}) {
      auto work = backend->allreduce(tensors, {});
      work->abort();
      EXPECT_THAT(complaint([&] { work->wait(std::chrono::seconds(30)); }), HasSubstr("rank 0 aborted operation"));
    }
    group.barrier().wait();  // other groups go on
    EXPECT_THAT(complaint([&] { inner->barrier().wait(); }), HasSubstr("rank 0 aborted operation"));
  });
}

TEST(BackendTest, LettingGoOfAGroupTellsTheOthers) {
  run_ranks(2, [](Group& group) {
    auto inner = group.subgroup({Rank{0}, Rank{1}});
    inner->barrier().wait();
    if (group.rank() == Rank{1}) {
      inner.reset();
    } else {
      EXPECT_THAT(complaint([&] { inner->barrier().wait(); }), HasSubstr("rank 1"));
    }
    group.barrier().wait();
  });
}

TEST(BackendTest, ShutDownFromACallback) {
  run_ranks(1, [](Group& group) {
    auto inner = *group.subgroup({Rank{0}});
    std::promise<void> done;
    auto work = inner.barrier();
    work.future()->addCallback([&](c10::ivalue::Future&) {
      backend_of(inner)->shutdown();
      done.set_value();
    });
    done.get_future().wait();
    EXPECT_THAT(complaint([&] { inner.barrier(); }), HasSubstr("shut down"));
    EXPECT_THAT(complaint([&] { inner.blocking().barrier(); }), HasSubstr("shut down"));
  });
}

}  // namespace
}  // namespace tutti
