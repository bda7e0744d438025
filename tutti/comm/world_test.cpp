#include "tutti/comm/world.h"

#include <atomic>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

namespace tutti {
namespace {

using ::testing::HasSubstr;

TEST(World, AloneIsAWorldOfOne) {
  const auto world = init();
  EXPECT_EQ(world.rank(), Rank{0});
  EXPECT_EQ(world.size(), 1);
  EXPECT_EQ(world.launcher(), Launcher::none);
  auto value = torch::ones({3});
  world.group().all_reduce(value).wait();
  EXPECT_TRUE(torch::equal(value, torch::ones({3})));
}

TEST(World, CanBeMadeAgainAndAgain) {
  for (int i = 0; i < 3; ++i) {
    init().group().barrier().wait();
  }
}

TEST(World, ExplicitOptionsMeetAtAStore) {
  const auto store = "unix:tutti-world-test-" + std::to_string(::getpid());
  std::atomic<int> sum{0};
  std::vector<std::jthread> ranks;
  for (int rank = 0; rank < 3; ++rank) {
    ranks.emplace_back([&, rank] {
      const auto world = init({.rank = Rank{rank}, .world_size = 3, .store = store});
      EXPECT_EQ(world.group().engine(), "shm");
      auto value = torch::tensor(rank);
      world.group().all_reduce(value).wait();
      sum += value.item<int>();
    });
  }
  ranks.clear();
  EXPECT_EQ(sum, 9);
}

std::string complaint(const InitOptions& options) {
  try {
    (void)init(options);
    return "no complaint";
  } catch (const Exception& exception) {
    return exception.what();
  }
}

TEST(World, SaysWhatIsWrongWithOptions) {
  EXPECT_THAT(complaint({.rank = Rank{1}}), HasSubstr("give both rank and world_size"));
  EXPECT_THAT(complaint({.rank = Rank{2}, .world_size = 2, .store = "unix:x"}), HasSubstr("rank 2 in a world of 2"));
  EXPECT_THAT(complaint({.rank = Rank{0}, .world_size = 2}), HasSubstr("need a store to meet at"));
  EXPECT_THAT(complaint({.rank = Rank{0}, .world_size = 2, .store = "tcp:127.0.0.1:0"}),
              HasSubstr("needs the job's secret"));
  EXPECT_THAT(complaint({.rank = Rank{0}, .world_size = 2, .store = "carrier pigeon"}), HasSubstr("carrier pigeon"));
}

TEST(World, AMissingRankIsSaidAtTheDeadline) {
  const auto what = complaint({.rank = Rank{0},
                               .world_size = 2,
                               .store = "unix:tutti-lonely-" + std::to_string(::getpid()),
                               .timeout = std::chrono::milliseconds(100)});
  EXPECT_THAT(what, HasSubstr("still missing: rank 1"));
}

TEST(RunRanks, GivesEveryRankItsPlace) {
  std::atomic<int> seen{0};
  run_ranks(5, [&](World& world) {
    seen += 1 << to_int(world.rank());
    EXPECT_EQ(world.size(), 5);
    EXPECT_EQ(world.local_rank(), to_int(world.rank()));
    EXPECT_EQ(world.local_size(), 5);
  });
  EXPECT_EQ(seen, 31);
}

TEST(RunRanks, TakesAFunctionOfTheGroup) {
  run_ranks(3, [](Group& group) {
    auto value = torch::ones({7});
    group.all_reduce(value).wait();
    EXPECT_TRUE(torch::equal(value, torch::full({7}, 3.0F)));
  });
}

TEST(RunRanks, AFailingRankFailsTheCallWithItsError) {
  const auto failing = [] {
    run_ranks(3, [](World& world) {
      if (world.rank() == Rank{1}) {
        throw std::out_of_range("rank 1 ran out");
      }
      world.group().barrier().wait();  // ended by the rank that left, not by a deadline
    });
  };
  EXPECT_THROW(
      {
        try {
          failing();
        } catch (const std::out_of_range& error) {
          EXPECT_STREQ(error.what(), "rank 1 ran out");
          throw;
        }
      },
      std::out_of_range);
}

TEST(RunRanks, AFailureEndsEveryKindOfWait) {
  EXPECT_THROW(run_ranks(4,
                         [](World& world) {
                           const int me = to_int(world.rank());
                           if (me == 1) {
                             throw std::out_of_range("gone");
                           }
                           if (me == 0) {
                             (void)world.group().subgroup({Rank{0}, Rank{1}})->barrier().wait();
                           } else if (me == 2) {
                             (void)world.group().split(0);
                           } else {
                             (void)world.store()->get("never set");
                           }
                         }),
               std::out_of_range);
}

TEST(RunRanks, NoRanksIsAnError) {
  EXPECT_THROW(run_ranks(0, [](World&) {}), Exception);
}

TEST(RunRanks, StoreIsSharedAndWhole) {
  run_ranks(3, [](World& world) {
    const auto store = world.store();
    if (world.rank() == Rank{0}) {
      store->set("key", std::string("value"));
    }
    EXPECT_EQ(store->get_to_str("key"), "value");
    store->add("count", 1);
    store->barrier("all", 3, std::chrono::seconds(60));
    EXPECT_EQ(store->add("count", 0), 3);
  });
}

}  // namespace
}  // namespace tutti
