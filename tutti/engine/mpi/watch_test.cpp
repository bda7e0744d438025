#include "tutti/engine/mpi/watch.h"

#include <atomic>
#include <future>

#include <gtest/gtest.h>

#include "tutti/rendezvous/local_store.h"

namespace tutti::engine::mpi {
namespace {

using std::chrono::seconds;

TEST(Watch, AnErrorSurvivesTheStore) {
  const Error error{Code::peer_lost, "rank 3 (pid 17) died: 1 2 3", Rank{3}};
  const auto back = unpack_error(pack(error));
  EXPECT_EQ(back.code, error.code);
  EXPECT_EQ(back.message, error.message);
  EXPECT_EQ(back.rank, error.rank);
  EXPECT_EQ(unpack_error(pack({Code::aborted, "enough"})).rank, std::nullopt);
  for (const auto* bad : {"", "x", "5", "99 1 text", "-1 0 text", "1 x text"}) {
    EXPECT_EQ(unpack_error(bad).code, Code::protocol) << bad;
  }
}

TEST(Watch, WhatOneTellsAllOthersHear) {
  const auto store = rendezvous::make_local_store();
  std::promise<Error> second;
  std::promise<Error> third;
  std::atomic<int> first{0};
  Watch one(store, "g", Rank{0}, 3, [&](const Error&, Watch::Source) { ++first; });
  Watch two(store, "g", Rank{1}, 3, [&](const Error& error, Watch::Source) { second.set_value(error); });
  Watch three(store, "g", Rank{2}, 3, [&](const Error& error, Watch::Source) { third.set_value(error); });
  one.tell({Code::aborted, "enough", Rank{0}});
  EXPECT_EQ(second.get_future().get().message, "enough");
  EXPECT_EQ(third.get_future().get().rank, Rank{0});
  EXPECT_EQ(first, 0);
}

TEST(Watch, LeavingInPeaceTellsNobody) {
  const auto store = rendezvous::make_local_store();
  std::atomic<int> told{0};
  Watch stays(store, "g", Rank{0}, 2, [&](const Error&, Watch::Source) { ++told; });
  {
    const Watch leaves(store, "g", Rank{1}, 2, [&](const Error&, Watch::Source) { ++told; });
  }
  EXPECT_EQ(told, 0);
}

TEST(Watch, ALostRankIsHeardOfThroughTheStore) {
  const auto store = rendezvous::make_local_store();
  std::promise<Error> heard;
  const Watch watch(store, "g", Rank{0}, 3, [&](const Error& error, Watch::Source source) {
    EXPECT_EQ(source, Watch::Source::store);
    heard.set_value(error);
  });
  store->fail({Code::peer_lost, "rank 2 died", Rank{2}});
  const auto error = heard.get_future().get();
  EXPECT_EQ(error.rank, Rank{2});
  EXPECT_EQ(in_operation(error, "all_reduce #7").message, "all_reduce #7: the job's store says: rank 2 died");
}

TEST(Watch, WhoNamesAnOperationIsNotGivenAnother) {
  const Error error{Code::timed_out, "broadcast #3: still missing: rank 1", Rank{1}};
  EXPECT_EQ(in_operation(error, "all_reduce #7").message, error.message);
}

}  // namespace
}  // namespace tutti::engine::mpi
