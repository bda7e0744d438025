#include "tutti/engine/apart/apart.h"

#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tutti/rendezvous/client.h"

namespace tutti::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

TEST(Apart, MeetsAgainAndAgain) {
  const auto store = rendezvous::make_local_store();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 3; ++rank) {
    threads.emplace_back([&, rank] {
      const auto engine = make_apart_engine(store, "g", Rank{rank}, 3);
      for (int round = 0; round < 7; ++round) {
        EXPECT_TRUE(engine->run({.op = Op::barrier}, Deadline::after(seconds(60))).ok());
      }
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
}

TEST(Apart, SaysThatItCanDoNothingElse) {
  const auto engine = make_apart_engine(rendezvous::make_local_store(), "world", Rank{0}, 2, "no plugin");
  EXPECT_TRUE(engine->can(Op::barrier).ok());
  EXPECT_THAT(engine->can(Op::all_reduce).error().message, HasSubstr("no MPI between them (no plugin)"));
  const auto status = engine->run({.op = Op::all_reduce}, Deadline::after(seconds(1)));
  EXPECT_EQ(status.error().code, Code::unsupported);
  EXPECT_THAT(status.error().message, HasSubstr("group 'world' are on different hosts"));
  engine->send(Rank{1}, 0, {}, Deadline::never(), [](const Status& sent) { EXPECT_FALSE(sent.ok()); });
  engine->receive(Rank{1}, 0, {}, Deadline::never(), [](const Result<Rank>& received) { EXPECT_FALSE(received.ok()); });
}

TEST(Apart, EndsAtTheDeadline) {
  const auto engine = make_apart_engine(rendezvous::make_local_store(), "g", Rank{0}, 2);
  const auto status = engine->run({.op = Op::barrier}, Deadline::after(milliseconds(20)));
  EXPECT_EQ(status.error().code, Code::timed_out);
  EXPECT_THAT(status.error().message, HasSubstr("before all of its 2 ranks came"));
  EXPECT_TRUE(engine->broken().has_value());
}

TEST(Apart, AnAbortEndsTheWait) {
  const auto engine = make_apart_engine(rendezvous::make_local_store(), "g", Rank{0}, 2);
  std::jthread aborter([&] {
    std::this_thread::sleep_for(milliseconds(20));
    engine->abort({Code::aborted, "enough"});
  });
  EXPECT_EQ(engine->run({.op = Op::barrier}, Deadline::never()).error().message, "enough");
  EXPECT_FALSE(engine->run({.op = Op::barrier}, Deadline::never()).ok());
}

}  // namespace
}  // namespace tutti::engine
