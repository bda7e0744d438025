#include "tutti/comm/c10d_store.h"

#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include "tutti/rendezvous/client.h"

namespace tutti {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;
using Bytes = std::vector<uint8_t>;

c10::intrusive_ptr<C10dStore> make_store(milliseconds timeout = milliseconds(60'000)) {
  return c10::make_intrusive<C10dStore>(rendezvous::make_local_store(), timeout);
}

TEST(C10dStore, EverythingC10dAsksOfAStore) {
  const auto store = make_store();
  store->set("a", std::string("1"));
  EXPECT_EQ(store->get_to_str("a"), "1");
  EXPECT_EQ(store->compareSet("a", std::string("1"), std::string("2")), "2");
  EXPECT_EQ(store->compareSet("a", std::string("1"), std::string("3")), "2");
  EXPECT_EQ(store->add("n", 5), 5);
  EXPECT_EQ(store->add("n", -2), 3);
  store->append("a", Bytes{'x'});
  EXPECT_EQ(store->get_to_str("a"), "2x");
  EXPECT_TRUE(store->check({"a", "n"}));
  EXPECT_FALSE(store->check({"a", "missing"}));
  EXPECT_EQ(store->getNumKeys(), 2);
  EXPECT_THAT(store->listKeys(), UnorderedElementsAre("a", "n"));
  EXPECT_TRUE(store->deleteKey("a"));
  EXPECT_FALSE(store->deleteKey("a"));
  store->multiSet({"p", "q"}, {Bytes{1}, Bytes{0, 2}});
  EXPECT_THAT(store->multiGet({"q", "p"}), ElementsAre(Bytes{0, 2}, Bytes{1}));
  EXPECT_TRUE(store->hasExtendedApi());
  store->queuePush("jobs", Bytes{7});
  EXPECT_EQ(store->queueLen("jobs"), 1);
  EXPECT_EQ(store->queuePop("jobs", true), Bytes{7});
  store->barrier("alone", 1, milliseconds(1000));
}

TEST(C10dStore, WaitsForWhatIsNotThereYet) {
  const auto store = make_store();
  std::jthread writer([clone = store->clone()] {
    std::this_thread::sleep_for(milliseconds(20));
    clone->set("late", std::string("here"));
  });
  EXPECT_EQ(store->get_to_str("late"), "here");
}

TEST(C10dStore, TimesOutAsC10dDoes) {
  const auto store = make_store(milliseconds(20));
  EXPECT_THROW((void)store->get("never"), c10::DistStoreError);
  try {
    store->wait({"never"}, milliseconds(10));
    FAIL() << "no error";
  } catch (const c10::DistStoreError& error) {
    EXPECT_THAT(error.what_without_backtrace(), HasSubstr("never"));
  }
  EXPECT_THROW(store->wait({"never"}, milliseconds(0)), c10::DistStoreError);  // now, not never
  EXPECT_THROW((void)store->queuePop("empty", false), c10::DistQueueEmptyError);
  EXPECT_THROW(store->multiSet({"a"}, {}), c10::ValueError);
}

TEST(C10dStore, WorksUnderAPrefix) {
  const auto store = make_store();
  c10d::PrefixStore prefixed("p", store);
  prefixed.set("k", std::string("v"));
  EXPECT_EQ(store->get_to_str("p/k"), "v");
}

TEST(ForeignStore, ServesWhatGroupsNeed) {
  const auto store = from_c10d(c10::make_intrusive<c10d::HashStore>());
  const auto soon = Deadline::after(std::chrono::seconds(60));
  ASSERT_TRUE(store->set("a", "1", soon).ok());
  EXPECT_EQ(store->get("a", soon).value(), "1");
  EXPECT_EQ(store->add("n", 2, soon).value(), 2);
  EXPECT_TRUE(store->erase("a", soon).value());
  std::jthread other([&] { EXPECT_TRUE(store->barrier("b", 2, soon).ok()); });
  EXPECT_TRUE(store->barrier("b", 2, soon).ok());
  EXPECT_EQ(store->call({.op = rendezvous::Op::push}, soon).error().code, Code::unsupported);
}

TEST(ForeignStore, AWaitHoldsUpNobody) {
  const auto store = from_c10d(c10::make_intrusive<c10d::HashStore>());
  const auto soon = Deadline::after(std::chrono::seconds(60));
  std::jthread waiter([&] { EXPECT_EQ(store->get("late", soon).value(), "x"); });
  std::this_thread::sleep_for(milliseconds(20));
  EXPECT_TRUE(store->set("late", "x", soon).ok());
}

TEST(ForeignStore, NamesWhatDidNotCome) {
  const auto store = from_c10d(c10::make_intrusive<c10d::HashStore>());
  const auto result = store->get_all({"a", "b"}, Deadline::after(milliseconds(20)));
  EXPECT_EQ(result.error().code, Code::timed_out);
  EXPECT_THAT(result.error().message, HasSubstr("a, b"));
}

}  // namespace
}  // namespace tutti
