#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include "tutti/rendezvous/client.h"

namespace tutti::rendezvous {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

Deadline patience() { return Deadline::after(std::chrono::seconds(60)); }

TEST(LocalStore, threads_find_each_other) {
  const auto store = make_local_store();
  constexpr int kRanks = 7;
  std::vector<std::jthread> ranks;
  for (int rank = 0; rank < kRanks; ++rank) {
    ranks.emplace_back([&, rank] {
      ASSERT_TRUE(store->set(std::to_string(rank), "at " + std::to_string(rank), patience()).ok());
      for (int other = 0; other < kRanks; ++other) {
        EXPECT_EQ(store->get(std::to_string(other), patience()).value(), "at " + std::to_string(other));
      }
      for (int round = 0; round < 31; ++round) {
        ASSERT_TRUE(store->add("sum", 1, patience()).ok());
        ASSERT_TRUE(store->barrier("all", kRanks, patience()).ok());
        EXPECT_GE(store->add("sum", 0, patience()).value(), kRanks * (round + 1));
      }
    });
  }
}

TEST(LocalStore, time_outs_say_what_is_missing) {
  const auto store = make_local_store();
  const auto waited = store->wait({"nobody"}, Deadline::after(milliseconds(5)));
  ASSERT_FALSE(waited.ok());
  EXPECT_EQ(waited.error().code, Code::timed_out);
  EXPECT_THAT(waited.error().message, HasSubstr("'nobody'"));
  EXPECT_THAT(store->barrier("b", 3, Deadline::after(milliseconds(0))).error().message, HasSubstr("1 of 3"));
}

TEST(LocalStore, waits_for_ever_when_told_to) {
  const auto store = make_local_store();
  std::jthread late([&] {
    std::this_thread::sleep_for(milliseconds(20));
    ASSERT_TRUE(store->set("k", "v", patience()).ok());
  });
  EXPECT_EQ(store->get("k", Deadline::never()).value(), "v");
}

TEST(LocalStore, everyday_forms_pass_errors_on) {
  const auto store = make_local_store();
  ASSERT_TRUE(store->set("text", "x", patience()).ok());
  EXPECT_EQ(store->add("text", 1, patience()).error().code, Code::invalid_argument);
  EXPECT_EQ(store->barrier("b", 0, patience()).error().code, Code::invalid_argument);
  EXPECT_FALSE(store->erase(std::string(1 << 20, 'k'), patience()).ok());
  EXPECT_TRUE(store->erase("text", patience()).value());
  EXPECT_TRUE(store->get_all({}, patience()).value().empty());
}

TEST(LocalStore, AFailureEndsWaitingAndLaterCalls) {
  const auto store = make_local_store();
  std::jthread failer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    store->fail({Code::peer_lost, "rank 3 failed", Rank{3}});
    store->fail({Code::aborted, "too late to count"});
  });
  EXPECT_EQ(store->get("never", Deadline::never()).error().message, "rank 3 failed");
  EXPECT_EQ(store->set("a", "1", Deadline::never()).error().rank, Rank{3});
}

}  // namespace
}  // namespace tutti::rendezvous
