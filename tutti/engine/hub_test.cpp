#include "tutti/engine/hub.h"

#include <sched.h>

#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tutti/memory/arena.h"

namespace tutti::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

const Doing kDoing{.card = {.op = Op::barrier}, .sequence = 7};

struct Pair {
  HubLayout layout = HubLayout::for_ranks(2);
  memory::Arena arena = memory::Arena::create_private(layout.total_bytes()).value();
  Hub first{arena.data(), layout, Rank{0}};
  Hub second{arena.data(), layout, Rank{1}};
};

TEST(HubLayout, PartsDoNotOverlap) {
  for (const int ranks : {1, 2, 3, 7, 64, 300}) {
    const auto layout = HubLayout::for_ranks(ranks);
    for (int rank = 0; rank < ranks; ++rank) {
      EXPECT_EQ(layout.slot(Rank{rank}, 0) % 64, 0U);
      EXPECT_GE(layout.slot(Rank{rank}, 1), layout.slot(Rank{rank}, 0) + layout.slot_bytes);
      for (unsigned which = 1; which < HubLayout::kShelves; ++which) {
        EXPECT_GE(layout.shelf(Rank{rank}, which), layout.shelf(Rank{rank}, which - 1) + layout.shelf_bytes);
      }
      EXPECT_EQ(layout.mailbox(Rank{rank}, Rank{0}) % 64, 0U);
    }
    EXPECT_GE(layout.shelf(Rank{0}, 0), layout.rank_block(Rank{ranks}));
    EXPECT_GE(layout.slot(Rank{0}, 0), layout.shelf(Rank{ranks - 1}, HubLayout::kShelves - 1) + layout.shelf_bytes);
    EXPECT_GE(layout.mailbox(Rank{0}, Rank{0}), layout.slot(Rank{ranks - 1}, 2) + layout.slot_bytes);
    EXPECT_GE(layout.total_bytes(), layout.mailbox(Rank{ranks - 1}, Rank{ranks - 1}) + layout.mailbox_bytes);
  }
}

TEST(HubLayout, StaysSmall) {
  EXPECT_LE(HubLayout::for_ranks(2).total_bytes(), std::size_t{32} << 20);
  EXPECT_LE(HubLayout::for_ranks(64).total_bytes(), std::size_t{64} << 20);
  EXPECT_LE(HubLayout::for_ranks(200).total_bytes(), std::size_t{99} << 20);
}

/// How long the ranks of a pair spin when they are bound to these cores.
int spins_when_bound(int first_core, int second_core) {
  const auto layout = HubLayout::for_ranks(2);
  const auto arena = memory::Arena::create_private(layout.total_bytes()).value();
  int spins = 0;
  const auto join = [&](int core, Rank rank) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
    Hub hub(arena.data(), layout, rank);
    EXPECT_EQ(hub.patience().spins, 1) << "nobody else is known to be here";
    hub.tell_cores();
    hub.count_cores();
    spins = hub.patience().spins;
  };
  std::thread(join, first_core, Rank{0}).join();
  std::thread(join, second_core, Rank{1}).join();
  return spins;
}

TEST(Hub, RanksOnCoresOfTheirOwnSpin) {
  cpu_set_t allowed;
  ASSERT_EQ(::sched_getaffinity(0, sizeof allowed, &allowed), 0);
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &allowed)) {
      cores.push_back(core);
    }
  }
  EXPECT_EQ(spins_when_bound(cores[0], cores[0]), 1);
  if (cores.size() < 2) {
    GTEST_SKIP() << "two cores are needed for the rest, and there is one";
  }
  EXPECT_GT(spins_when_bound(cores[0], cores[1]), 1);
}

TEST(Hub, ALateRankIsNamedAtTheDeadline) {
  Pair pair;
  memory::mark_here(pair.second.life(Rank{1}));
  const auto status = pair.first.meet(kDoing, Deadline::after(milliseconds(20)));
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, Code::timed_out);
  EXPECT_THAT(status.error().message, HasSubstr("barrier #7: the deadline passed; still missing: rank 1 (pid "));
  EXPECT_EQ(status.error().rank, Rank{1});
}

TEST(Hub, TheErrorTellsWhereTheCallWasMade) {
  Pair pair;
  const Doing doing{.card = {.op = Op::barrier}, .sequence = 8, .site = {.file = "train.cpp", .line = 42}};
  const auto status = pair.first.meet(doing, Deadline::after(milliseconds(20)));
  EXPECT_THAT(status.error().message, HasSubstr("barrier #8 at train.cpp:42: the deadline passed"));
}

TEST(Hub, ARankThatNeverCameIsCalledThat) {
  Pair pair;
  const auto status = pair.first.meet(kDoing, Deadline::after(milliseconds(20)));
  EXPECT_THAT(status.error().message, HasSubstr("rank 1 (never joined the group)"));
}

TEST(Hub, ARankThatLeftEndsTheWaitAtOnce) {
  Pair pair;
  memory::mark_here(pair.second.life(Rank{1}));
  std::thread leaver([&] {
    std::this_thread::sleep_for(milliseconds(30));
    memory::mark_left(pair.second.life(Rank{1}));
  });
  const auto status = pair.first.meet(kDoing, Deadline::after(seconds(50)));
  leaver.join();
  EXPECT_EQ(status.error().code, Code::peer_lost);
  EXPECT_THAT(status.error().message, HasSubstr("left the group"));
}

TEST(Hub, WhoCameAndLeftIsNotMissed) {
  Pair pair;
  memory::mark_here(pair.second.life(Rank{1}));
  std::thread second([&] {
    EXPECT_TRUE(pair.second.meet(kDoing, Deadline::after(seconds(50))).ok());
    memory::mark_left(pair.second.life(Rank{1}));
  });
  std::this_thread::sleep_for(milliseconds(20));
  EXPECT_TRUE(pair.first.meet(kDoing, Deadline::after(seconds(50))).ok());
  second.join();
}

TEST(Hub, TheFirstErrorIsEverybodys) {
  Pair pair;
  EXPECT_FALSE(pair.first.broken());
  pair.second.fail({Code::peer_lost, "rank 5 died", Rank{5}});
  pair.first.fail({Code::timed_out, "too late to count"});
  const auto status = pair.first.meet(kDoing, Deadline::after(seconds(50)));
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, Code::peer_lost);
  EXPECT_EQ(status.error().message, "rank 5 died");
  EXPECT_EQ(status.error().rank, Rank{5});
}

TEST(Hub, FailureWakesASleeper) {
  Pair pair;
  std::thread breaker([&] {
    std::this_thread::sleep_for(milliseconds(30));
    pair.second.fail({Code::aborted, "enough"});
  });
  EXPECT_EQ(pair.first.meet(kDoing, Deadline::after(seconds(50))).error().message, "enough");
  breaker.join();
}

TEST(Hub, LongMessagesAreCutNotOverrun) {
  Pair pair;
  pair.first.fail({Code::aborted, std::string(100'000, 'x')});
  EXPECT_LE(pair.second.broken()->message.size(), 1024U);
}

}  // namespace
}  // namespace tutti::engine
