#include "tutti/rendezvous/server.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include <gmock/gmock.h>

#include "tutti/rendezvous/test_server.h"
#include "tutti/rendezvous/wire.h"
#include "tutti/version.h"

namespace tutti::rendezvous {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::HasSubstr;

class ServerTest : public OverBoth {};
INSTANTIATE_TEST_SUITE_P(Over, ServerTest, ::testing::Values(Address::Kind::unix_name, Address::Kind::tcp), kind_name);

TEST_P(ServerTest, a_second_rank_of_the_same_number_is_refused_naming_both) {
  TestServer job(GetParam(), 2);
  const auto first = job.join(1);
  const auto second = job.try_join(1);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, Code::refused);
  const auto pid = "pid " + std::to_string(::getpid());
  EXPECT_THAT(second.error().message, AllOf(HasSubstr("rank 1 is already here (" + pid), HasSubstr(pid + " on host"),
                                            HasSubstr("says it is rank 1 too")));
  EXPECT_TRUE(first->set("still", "here", patience()).ok());
  EXPECT_EQ(job.server().counters().rejected, 1U);
}

TEST_P(ServerTest, another_world_size_is_refused_naming_both) {
  TestServer job(GetParam(), 2);
  auto options = job.client(1);
  options.world_size = 4;
  const auto joined = join(options, patience());
  ASSERT_FALSE(joined.ok());
  EXPECT_EQ(joined.error().code, Code::refused);
  EXPECT_THAT(joined.error().message, AllOf(HasSubstr("the world has 4 ranks"), HasSubstr("this job has 2")));
}

TEST_P(ServerTest, a_rank_that_cannot_be_is_refused) {
  TestServer job(GetParam(), 2);
  for (const int rank : {-1, 2, 1'000'000'007}) {
    const auto joined = job.try_join(rank);
    ASSERT_FALSE(joined.ok());
    EXPECT_THAT(joined.error().message, HasSubstr("ranks 0 to 1"));
  }
}

TEST_P(ServerTest, after_a_goodbye_the_number_is_free_at_once) {
  TestServer job(GetParam(), 1);
  for (int world = 0; world < 17; ++world) {
    const auto store = job.join(0);
    ASSERT_NE(store, nullptr);
    EXPECT_EQ(store->call({.op = Op::count, .keys = {}, .values = {}}, patience()).value().number, 0);
    EXPECT_TRUE(store->set("key", "value", patience()).ok());
  }
}

TEST_P(ServerTest, the_next_world_does_not_see_the_last_ones_keys) {
  TestServer job(GetParam(), 2);
  auto zero = job.join(0);
  const auto one = job.join(1);
  ASSERT_TRUE(zero->set("key", "old", patience()).ok());
  zero = nullptr;
  zero = job.join(0);  // while rank 1 is still in the first one
  EXPECT_EQ(zero->get("key", Deadline::after(milliseconds(10))).error().code, Code::timed_out);
  ASSERT_TRUE(zero->set("key", "new", patience()).ok());
  EXPECT_EQ(one->get("key", patience()).value(), "old");
  EXPECT_EQ(one->call({.op = Op::list, .keys = {}, .values = {}}, patience()).value().values,
            std::vector<std::string>{"key"});
}

TEST_P(ServerTest, declared_losses_end_waiting_and_later_calls) {
  TestServer job(GetParam(), 3);
  const auto zero = job.join(0);
  std::jthread launcher([&] {
    std::this_thread::sleep_for(milliseconds(20));
    job.server().declare_lost(Rank{2}, "rank 2 was killed by signal 9");
  });
  const auto waited = zero->barrier("b", 3, patience());
  ASSERT_FALSE(waited.ok());
  EXPECT_EQ(waited.error().code, Code::peer_lost);
  EXPECT_EQ(waited.error().message, "rank 2 was killed by signal 9");
  EXPECT_EQ(waited.error().rank, Rank{2});
  EXPECT_EQ(zero->set("a", "b", patience()).error().code, Code::peer_lost);
  const auto one = job.join(1);  // who comes late hears it too
  EXPECT_EQ(one->set("a", "b", patience()).error().message, "rank 2 was killed by signal 9");
}

TEST_P(ServerTest, a_rank_that_dies_is_named_to_the_others) {
  TestServer job(GetParam(), 3);
  const auto options = job.client(1);
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t rank = ::fork();
  ASSERT_GE(rank, 0);
  if (rank == 0) {
    const auto joined = join(options, patience());
    const char byte = joined.ok() ? 'y' : 'n';
    [[maybe_unused]] const auto put = ::write(ready[1], &byte, 1);
    ::pause();
    ::_exit(0);
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  ::close(ready[0]);
  ::close(ready[1]);
  ASSERT_EQ(byte, 'y');
  const auto zero = job.join(0);
  const auto two = job.join(2);
  std::jthread killer([&] {
    std::this_thread::sleep_for(milliseconds(20));
    ::kill(rank, SIGKILL);
    ::waitpid(rank, nullptr, 0);
  });
  const auto waited = zero->get("never", patience());
  ASSERT_FALSE(waited.ok());
  EXPECT_EQ(waited.error().code, Code::peer_lost);
  EXPECT_EQ(waited.error().rank, Rank{1});
  EXPECT_THAT(waited.error().message, HasSubstr("rank 1 (pid " + std::to_string(rank)));
  EXPECT_EQ(two->set("a", "b", patience()).error().rank, Rank{1});
  EXPECT_TRUE(job.server().left_at(Rank{1}).has_value());
}

TEST_P(ServerTest, closes_the_door_when_all_are_in) {
  auto options = TestServer::default_options();
  options.close_when_complete = true;
  TestServer job(GetParam(), 2, options);
  const auto zero = job.join(0);
  const auto one = job.join(1);
  auto late = job.client(1);
  late.wait_for_server = false;
  EXPECT_FALSE(join(late, patience()).ok());
  ServerOptions next = TestServer::default_options();
  next.listen = {job.address()};
  const auto second = Server::start(next);  // the next job can have the address
  EXPECT_TRUE(second.ok()) << (second ? "" : second.error().message);
  EXPECT_TRUE(zero->barrier("b", 1, patience()).ok());
}

TEST_P(ServerTest, an_address_that_is_taken_is_an_error_that_names_it) {
  TestServer job(GetParam(), 1);
  auto options = TestServer::default_options();
  options.listen = {job.address()};
  const auto second = Server::start(options);
  ASSERT_FALSE(second.ok());
  EXPECT_THAT(second.error().message, AllOf(HasSubstr(job.address().text()), HasSubstr("in use")));
}

TEST_P(ServerTest, counts_who_is_there) {
  TestServer job(GetParam(), 3);
  auto zero = job.join(0);
  const auto one = job.join(1);
  EXPECT_EQ(job.server().counters().members, 2U);
  EXPECT_EQ(job.server().counters().accepted, 2U);
  zero = nullptr;
  EXPECT_EQ(job.server().counters().members, 1U);
  EXPECT_LE(job.server().counters().stranger_bytes, 4096U);
}

TEST_P(ServerTest, knows_who_left_first) {
  TestServer job(GetParam(), 3);
  EXPECT_FALSE(job.server().has_joined(Rank{0}));
  EXPECT_EQ(job.server().left_at(Rank{0}), std::nullopt);
  auto zero = job.join(0);
  auto one = job.join(1);
  EXPECT_TRUE(job.server().has_joined(Rank{0}));
  EXPECT_EQ(job.server().left_at(Rank{0}), std::nullopt);
  one = nullptr;
  zero = nullptr;
  ASSERT_TRUE(job.server().left_at(Rank{0}).has_value());
  EXPECT_LT(job.server().left_at(Rank{1}), job.server().left_at(Rank{0}));
  zero = job.join(0);  // in the next world
  EXPECT_EQ(job.server().left_at(Rank{0}), std::nullopt);
  EXPECT_TRUE(job.server().left_at(Rank{1}).has_value());
}

TEST(Server, listens_on_several_addresses) {
  auto options = TestServer::default_options();
  options.world_size = 2;
  options.listen = {Address::random_unix(), Address::parse("tcp:127.0.0.1:0").value(),
                    Address::parse("tcp:[::1]:0").value()};
  auto started = Server::start(options);
  if (!started) {  // a machine without IPv6
    options.listen.pop_back();
    started = Server::start(options);
  }
  ASSERT_TRUE(started.ok()) << started.error().message;
  const auto addresses = started.value()->addresses();
  ASSERT_EQ(addresses.size(), options.listen.size());
  for (const auto& address : addresses) {
    const auto store =
        join({.address = address, .rank = Rank{1}, .world_size = 2, .secret = options.secret}, patience());
    EXPECT_TRUE(store.ok()) << address.text();
  }
}

TEST(Server, a_world_has_at_least_one_rank) {
  auto options = TestServer::default_options();
  options.world_size = 0;
  EXPECT_EQ(Server::start(options).error().code, Code::invalid_argument);
}

TEST(Server, other_users_are_refused_over_a_unix_name) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "needs two users";
  }
  TestServer job(Address::Kind::unix_name, 1);
  auto options = job.client(0);
  options.wait_for_server = false;
  const pid_t stranger = ::fork();
  ASSERT_GE(stranger, 0);
  if (stranger == 0) {
    // It does not even look at who holds the name: a client of its own making.
    ::_exit(::setuid(65534) == 0 && !join(options, patience()).ok() ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(stranger, &status, 0), stranger);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(job.eventually([](const ServerCounters& c) { return c.rejected == 1 && c.members == 0; }));
}

TEST(Server, a_forked_child_that_ends_in_order_does_not_hang) {
  auto job = std::make_unique<TestServer>(Address::Kind::unix_name, 1);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    job.reset();
    ::_exit(0);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_NE(job->join(0), nullptr);
}

}  // namespace
}  // namespace tutti::rendezvous
