#include "tutti/comm/group.h"

#include <sys/wait.h>
#include <unistd.h>

#include <future>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/types.h>

#include "tutti/comm/test_complaint.h"
#include "tutti/comm/world.h"

namespace tutti {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Group, IsAProcessGroup) {
  run_ranks(3, [](Group& group) {
    const c10::intrusive_ptr<c10d::ProcessGroup>& process_group = group;
    EXPECT_EQ(process_group->getRank(), to_int(group.rank()));
    EXPECT_EQ(process_group->getSize(), 3);
    std::vector<at::Tensor> tensors{torch::ones({5})};
    process_group->allreduce(tensors)->wait();  // through c10d's dispatcher
    EXPECT_TRUE(torch::equal(tensors[0], torch::full({5}, 3.0F)));
    process_group->barrier()->wait();
  });
}

TEST(Group, OnlyMembersMakeASubgroup) {
  run_ranks(4, [](Group& group) {
    if (group.rank() == Rank{1} || group.rank() == Rank{3}) {
      const auto odd = group.subgroup({Rank{1}, Rank{3}});  // ranks 0 and 2 never come here
      ASSERT_TRUE(odd.has_value());
      EXPECT_EQ(odd->size(), 2);
      EXPECT_EQ(odd->rank(), Rank{to_int(group.rank()) / 2});
      EXPECT_THAT(odd->members(), ElementsAre(Rank{1}, Rank{3}));
      auto value = torch::tensor(to_int(group.rank()));
      odd->all_reduce(value).wait();
      EXPECT_EQ(value.item<int>(), 4);
    }
  });
}

TEST(Group, ANonMemberGetsNothingAndDoesNotWait) {
  run_ranks(3, [](Group& group) {
    const auto first = group.subgroup({Rank{0}});
    EXPECT_EQ(first.has_value(), group.rank() == Rank{0});
  });
}

TEST(Group, MembersMayBeInAnyOrder) {
  run_ranks(3, [](Group& group) {
    const auto reversed = group.subgroup({Rank{2}, Rank{1}, Rank{0}});
    EXPECT_EQ(reversed->rank(), Rank{2 - to_int(group.rank())});
    auto value = torch::tensor(to_int(group.rank()));
    reversed->broadcast(value, Rank{0}).wait();
    EXPECT_EQ(value.item<int>(), 2);
  });
}

TEST(Group, TheSameMembersTwiceAreTwoGroups) {
  run_ranks(2, [](Group& group) {
    const auto one = group.subgroup({Rank{0}, Rank{1}});
    const auto two = group.subgroup({Rank{0}, Rank{1}});
    EXPECT_NE(one->name(), two->name());
    // Different orders on the two ranks: the groups do not see each other.
    auto a = torch::ones({3});
    auto b = torch::ones({3});
    const bool first = group.rank() == Rank{0};
    auto left = (first ? *one : *two).all_reduce(first ? a : b);
    auto right = (first ? *two : *one).all_reduce(first ? b : a);
    left.wait();
    right.wait();
    EXPECT_TRUE(torch::equal(a, b));
  });
}

TEST(Group, SubgroupsOfSubgroupsKnowTheWorld) {
  run_ranks(4, [](Group& group) {
    const auto upper = group.subgroup({Rank{1}, Rank{2}, Rank{3}});
    if (upper) {
      const auto top = upper->subgroup({Rank{1}, Rank{2}});
      if (top) {
        EXPECT_THAT(top->members(), ElementsAre(Rank{2}, Rank{3}));
      }
    }
  });
}

TEST(Group, SplitByColourAndKey) {
  run_ranks(5, [](Group& group) {
    const int me = to_int(group.rank());
    const auto part = group.split(me == 4 ? -1 : me % 2, -me);
    if (me == 4) {
      EXPECT_FALSE(part.has_value());
      return;
    }
    ASSERT_TRUE(part.has_value());
    EXPECT_EQ(part->size(), 2);
    // The key turns the order around.
    EXPECT_THAT(part->members(), ElementsAre(Rank{me % 2 + 2}, Rank{me % 2}));
    auto value = torch::tensor(me);
    part->all_reduce(value).wait();
    EXPECT_EQ(value.item<int>(), 2 * (me % 2) + 2);
  });
}

TEST(Group, BadMembersAreNamed) {
  run_ranks(2, [](Group& group) {
    EXPECT_THAT(complaint([&] { (void)group.subgroup({Rank{0}, Rank{2}}); }), HasSubstr("rank 2 is not in the group"));
    EXPECT_THAT(complaint([&] { (void)group.subgroup({Rank{1}, Rank{1}}); }), HasSubstr("rank 1 is named twice"));
    EXPECT_THAT(complaint([&] { (void)group.subgroup({}); }), HasSubstr("no members"));
  });
}

TEST(Group, TensorsThatCannotTravelAreRefusedAtTheCall) {
  run_ranks(2, [](Group& group) {
    EXPECT_THAT(complaint([&] { group.all_reduce(at::Tensor()); }), HasSubstr("undefined tensor"));
    EXPECT_THAT(complaint([&] { group.broadcast(torch::ones({3}).to_sparse()); }), HasSubstr("to_dense"));
    EXPECT_THAT(complaint([&] { group.all_reduce(torch::ones({1}).expand({3})); }), HasSubstr("share memory"));
    EXPECT_THAT(complaint([&] { group.all_reduce(torch::ones({3}, torch::kInt), ReduceOp::avg); }),
                HasSubstr("avg of int32"));
    EXPECT_THAT(complaint([&] { group.broadcast(torch::ones({3}), Rank{2}); }), HasSubstr("root 2 is not a rank"));
    EXPECT_THAT(complaint([&] { group.all_gather(torch::ones({3}), torch::ones({3})); }), HasSubstr("need 6"));
    EXPECT_THAT(complaint([&] { group.all_gather(std::vector<at::Tensor>{torch::ones({3})}, torch::ones({3})); }),
                HasSubstr("the list has 1 tensors, and the group 2 ranks"));
    EXPECT_THAT(complaint([&] { group.all_to_all(torch::ones({3}), torch::ones({3})); }), HasSubstr("equal parts"));
    EXPECT_THAT(complaint([&] {
                  group.all_to_all(torch::ones({3}), torch::ones({3}), {1, 1}, {1, 2});
                }),
                HasSubstr("do not add up"));
    EXPECT_THAT(complaint([&] { group.send(torch::ones({3}), group.rank()).wait(); }),
                HasSubstr("cannot send to rank"));
    group.barrier().wait();  // nobody got out of step
  });
}

TEST(Group, AMismatchNamesBothRanksOnEveryRank) {
  run_ranks(3, [](Group& group) {
    auto tensor = torch::ones({group.rank() == Rank{2} ? 4 : 3});
    auto work = group.all_reduce(tensor);
    const auto what = complaint([&] { work.wait(); });
    EXPECT_THAT(what, HasSubstr("rank 0 calls all_reduce #"));
    EXPECT_THAT(what, HasSubstr("rank 2 calls all_reduce #"));
    EXPECT_TRUE(work.future()->hasError());
    EXPECT_EQ(tensor.sum().item<int>(), tensor.numel());  // untouched
  });
}

/// Somebody else's backend, for one rank.
class Solo final : public c10d::Backend {
 public:
  Solo() : c10d::Backend(0, 1) {}
  const std::string getBackendName() const override { return "solo"; }
  c10::intrusive_ptr<c10d::Work> allreduce(std::vector<at::Tensor>& tensors, const c10d::AllreduceOptions&) override {
    ++calls;
    auto future = c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()));
    future->markCompleted(c10::IValue(tensors));
    return c10d::Work::create_from_future(future);
  }
  int calls = 0;
};

TEST(Group, AnyProcessGroupCanBeOne) {
  auto solo = c10::make_intrusive<Solo>();
  auto process_group = c10::make_intrusive<c10d::ProcessGroup>(c10::make_intrusive<c10d::HashStore>(), 0, 1);
  process_group->setBackend(c10::DeviceType::CPU, c10d::ProcessGroup::BackendType::CUSTOM,
                            c10::intrusive_ptr<c10d::Backend>(solo));
  process_group->setDefaultBackend(c10d::ProcessGroup::BackendType::CUSTOM);
  process_group->setGroupName("theirs");
  const auto group = Group::from(process_group);
  EXPECT_EQ(group.engine(), "solo");
  EXPECT_EQ(group.size(), 1);
  group.all_reduce(torch::ones({3})).wait();
  EXPECT_EQ(solo->calls, 1);
  // Its sub-groups are ours, over its store.
  const auto ours = group.subgroup({Rank{0}});
  EXPECT_EQ(ours->engine(), "shm");
  ours->barrier().wait();
  // A second handle does not find what the first left in the store.
  const auto again = Group::from(process_group);
  EXPECT_EQ(again.split(3)->size(), 1);
  EXPECT_EQ(again.subgroup({Rank{0}})->size(), 1);
  EXPECT_EQ(group.split(4)->size(), 1);
  EXPECT_THROW(Group::from(nullptr), Exception);
}

TEST(Group, ShutdownEndsWhatIsUnderWay) {
  run_ranks(2, [](Group& group) {
    if (group.rank() == Rank{0}) {
      auto work = group.barrier();
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      group.process_group()->shutdown();
      EXPECT_THAT(complaint([&] { work.wait(); }), HasSubstr("closed the group with operations still under way"));
      EXPECT_THAT(complaint([&] { group.barrier(); }), HasSubstr("shut down"));
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(60));
      EXPECT_NE(complaint([&] { group.barrier().wait(); }), "no complaint");
    }
  });
}

/// For one test.
struct Variable {
  Variable(const char* variable, const char* value) : name(variable) { ::setenv(name, value, 1); }
  ~Variable() { ::unsetenv(name); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  const char* name;
};

TEST(Group, RunsThePlansOfTheEnvironment) {
  const Variable reduce("TUTTI_ALL_REDUCE", "double_tree/3");
  const Variable broadcast("TUTTI_BROADCAST", "scatter_gather");
  run_ranks(3, [](Group& group) {
    auto grads = torch::full({1003}, 1.0F + static_cast<float>(to_int(group.rank())));
    group.all_reduce(grads, ReduceOp::avg).wait();
    EXPECT_TRUE(torch::equal(grads, torch::full({1003}, 2.0F)));
    auto inner = group.subgroup({Rank{0}, Rank{2}});
    if (inner) {
      grads.fill_(to_int(inner->rank()) + 5);
      inner->broadcast(grads, Rank{1}).wait();
      EXPECT_TRUE(torch::equal(grads, torch::full({1003}, 6.0F)));
    }
  });
  ::setenv("TUTTI_ALL_REDUCE", "rong", 1);
  EXPECT_THAT(complaint([] { run_ranks(2, [](Group&) {}); }),
              HasSubstr("TUTTI_ALL_REDUCE=rong: no algorithm 'rong'; there are ring"));
  ::setenv("TUTTI_ALL_REDUCE", "bruck", 1);
  EXPECT_THAT(complaint([] { run_ranks(2, [](Group&) {}); }), HasSubstr("TUTTI_ALL_REDUCE=bruck: no bruck for"));
}

TEST(Group, AForkedChildIsToldSoAndHarmsNobody) {
  run_ranks(1, [](Group& group) {
    const pid_t child = ::fork();
    if (child == 0) {
      const auto what = complaint([&] { group.barrier(); });
      group.process_group()->shutdown();
      {
        Group last = std::move(group);  // and goes
      }
      ::_exit(what.find("forked") != std::string::npos ? 0 : 1);
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    group.barrier().wait();
  });
}

TEST(Group, ThrowingCallbacksAndCopiesHarmNobody) {
  run_ranks(2, [](Group& group) {
    // Inference tensors cannot be written by a thread outside of inference mode, unless one knows how.
    auto wide = [] {
      const c10::InferenceMode guard;
      return torch::ones({5, 4});
    }();
    auto column = wide.select(1, 1);
    group.all_reduce(column).wait();
    EXPECT_EQ(column.sum().item<float>(), 10.0F);
    auto work = group.barrier();
    try {
      work.future()->addCallback([](c10::ivalue::Future&) { throw std::runtime_error("careless"); });
    } catch (const std::runtime_error&) {
      // It was over already, and the callback ran here.
    }
    work.wait();
    group.barrier().wait();
  });
}

TEST(Group, MayBeDroppedByItsOwnCallback) {
  run_ranks(2, [](World& world) {
    auto part = std::make_shared<std::optional<Group>>(world.group().subgroup({Rank{0}, Rank{1}}));
    auto future = (*part)->barrier().future();
    std::promise<void> dropped;
    future->addCallback([part, &dropped](c10::ivalue::Future&) {
      part->reset();
      dropped.set_value();
    });
    dropped.get_future().wait();
    world.group().barrier().wait();
  });
}

TEST(Group, DurationsAndSequenceNumbersCount) {
  run_ranks(2, [](Group& group) {
    auto work = group.barrier();
    work.wait();
    EXPECT_GE(work.c10d_work()->getDuration(), 0.0F);
    const auto first = work.c10d_work()->getSequencenumber();
    EXPECT_EQ(group.barrier().c10d_work()->getSequencenumber(), first + 1);
  });
}

}  // namespace
}  // namespace tutti
