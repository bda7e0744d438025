#include "tutti/rendezvous/client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <thread>

#include <gmock/gmock.h>

#include "tutti/rendezvous/test_server.h"

namespace tutti::rendezvous {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class ClientTest : public OverBoth {};
INSTANTIATE_TEST_SUITE_P(Over, ClientTest, ::testing::Values(Address::Kind::unix_name, Address::Kind::tcp), kind_name);

TEST_P(ClientTest, what_one_sets_the_other_gets) {
  TestServer job(GetParam(), 2);
  const auto zero = job.join(0);
  const auto one = job.join(1);
  ASSERT_TRUE(zero->set("key", std::string("a\0b", 3), patience()).ok());
  EXPECT_EQ(one->get("key", patience()).value(), std::string("a\0b", 3));
  EXPECT_EQ(one->add("n", 3, patience()).value(), 3);
  EXPECT_EQ(zero->add("n", -5, patience()).value(), -2);
  EXPECT_TRUE(one->erase("key", patience()).value());
  EXPECT_FALSE(zero->erase("key", patience()).value());
}

TEST_P(ClientTest, a_get_waits_for_the_key) {
  TestServer job(GetParam(), 2);
  const auto zero = job.join(0);
  const auto one = job.join(1);
  std::jthread late([&] {
    std::this_thread::sleep_for(milliseconds(30));
    EXPECT_TRUE(zero->set("late", "there", patience()).ok());
  });
  EXPECT_EQ(one->get("late", patience()).value(), "there");
}

TEST_P(ClientTest, values_of_many_megabytes_go_through) {
  TestServer job(GetParam(), 1);
  const auto store = job.join(0);
  std::string large(33'333'333, 'x');
  large[7'777'777] = '\0';
  ASSERT_TRUE(store->set("large", large, patience()).ok());
  EXPECT_EQ(store->get("large", patience()).value(), large);
  const auto too_large = store->set("more", std::string((64U << 20) + 1, 'y'), patience());
  ASSERT_FALSE(too_large.ok());
  EXPECT_EQ(too_large.error().code, Code::invalid_argument);
  EXPECT_TRUE(store->set("small", "z", patience()).ok());  // the connection is none the worse for it
}

TEST_P(ClientTest, a_timed_out_wait_names_the_missing_keys) {
  TestServer job(GetParam(), 1);
  const auto store = job.join(0);
  ASSERT_TRUE(store->set("here", "1", patience()).ok());
  const auto waited = store->wait({"here", "gone", "away"}, Deadline::after(milliseconds(20)));
  ASSERT_FALSE(waited.ok());
  EXPECT_EQ(waited.error().code, Code::timed_out);
  EXPECT_THAT(waited.error().message, AllOf(HasSubstr("'gone', 'away'"), HasSubstr("2 of 3"), Not(HasSubstr("here'"))));
}

TEST_P(ClientTest, without_time_a_call_still_sees_what_is_there) {
  TestServer job(GetParam(), 1);
  const auto store = job.join(0);
  ASSERT_TRUE(store->set("here", "1", patience()).ok());
  EXPECT_EQ(store->get("here", Deadline::after(milliseconds(0))).value(), "1");
  EXPECT_EQ(store->get("gone", Deadline::after(milliseconds(0))).error().code, Code::timed_out);
}

TEST_P(ClientTest, a_barrier_that_timed_out_says_who_came_and_can_be_used_again) {
  TestServer job(GetParam(), 3);
  const auto zero = job.join(0);
  const auto one = job.join(1);
  std::jthread also([&] { EXPECT_FALSE(one->barrier("b", 3, Deadline::after(milliseconds(200))).ok()); });
  const auto failed = zero->barrier("b", 3, Deadline::after(milliseconds(100)));
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().code, Code::timed_out);
  EXPECT_THAT(failed.error().message, AllOf(HasSubstr("of 3 came"), HasSubstr("'b'")));
  also.join();
  for (int round = 0; round < 5; ++round) {  // the two who gave up do not count
    std::jthread other([&] { EXPECT_TRUE(one->barrier("b", 2, patience()).ok()); });
    EXPECT_TRUE(zero->barrier("b", 2, patience()).ok());
  }
}

TEST_P(ClientTest, a_call_that_waits_holds_up_no_other_thread) {
  TestServer job(GetParam(), 1);
  const auto store = job.join(0);
  constexpr int kThreads = 7;
  std::vector<std::jthread> waiting;
  for (int i = 0; i < kThreads; ++i) {
    waiting.emplace_back(
        [&, i] { EXPECT_EQ(store->get("go" + std::to_string(i), patience()).value(), std::to_string(i)); });
  }
  for (int i = kThreads - 1; i >= 0; --i) {  // in the opposite order: every waiter is woken while others still wait
    EXPECT_TRUE(store->set("go" + std::to_string(i), std::to_string(i), patience()).ok());
    EXPECT_EQ(store->add("count", 1, patience()).value(), kThreads - i);
  }
}

TEST_P(ClientTest, many_threads_many_calls) {
  TestServer job(GetParam(), 2);
  const auto zero = job.join(0);
  const auto one = job.join(1);
  constexpr int kThreads = 5;
  constexpr int kCalls = 203;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 2 * kThreads; ++t) {
      threads.emplace_back([&, t] {
        auto& store = t % 2 == 0 ? *zero : *one;
        for (int i = 0; i < kCalls; ++i) {
          ASSERT_TRUE(store.add("sum", 1, patience()).ok());
          if (i % 51 == 0) {
            ASSERT_TRUE(store.barrier("all", 2 * kThreads, patience()).ok());
          }
          if (i % 37 == 0) {
            ASSERT_EQ(store.get("never", Deadline::after(milliseconds(1))).error().code, Code::timed_out);
          }
        }
      });
    }
  }
  EXPECT_EQ(zero->add("sum", 0, patience()).value(), 2 * kThreads * kCalls);
}

TEST_P(ClientTest, no_popped_value_is_lost_when_time_runs_out) {
  TestServer job(GetParam(), 2);
  const auto pusher = job.join(0);
  const auto popper = job.join(1);
  constexpr int kValues = 301;
  std::jthread push([&] {
    for (int i = 0; i < kValues; ++i) {
      EXPECT_TRUE(pusher->call({.op = Op::push, .keys = {"q"}, .values = {std::to_string(i)}}, patience()).ok());
    }
  });
  int next = 0;
  while (next < kValues) {
    const auto popped = popper->call({.op = Op::pop, .keys = {"q"}, .values = {}, .number = 1},
                                     Deadline::after(std::chrono::microseconds(50)));
    if (popped) {
      ASSERT_EQ(popped.value().values, std::vector{std::to_string(next)});
      ++next;
    } else {
      ASSERT_EQ(popped.error().code, Code::timed_out);
    }
  }
}

TEST_P(ClientTest, calls_fail_when_the_server_is_gone) {
  TestServer job(GetParam(), 1);
  const auto store = job.join(0);
  std::jthread killer([&] {
    std::this_thread::sleep_for(milliseconds(20));
    job.stop();
  });
  const auto waited = store->get("never", patience());
  ASSERT_FALSE(waited.ok());
  EXPECT_EQ(waited.error().code, Code::peer_lost);
  EXPECT_THAT(waited.error().message, HasSubstr("store at"));
  EXPECT_EQ(waited.error().rank, std::nullopt);
  EXPECT_EQ(store->set("a", "b", patience()).error().code, Code::peer_lost);
}

TEST_P(ClientTest, a_rank_that_took_the_server_with_it_is_named) {
  TestServer job(GetParam(), 3);
  auto options = job.client(1);
  options.served_by = Rank{0};
  const auto store = join(options, patience()).value();
  const auto address = job.address().text();
  job.stop();
  const auto waited = store->get("never", patience());
  ASSERT_FALSE(waited.ok());
  EXPECT_EQ(waited.error().code, Code::peer_lost);
  EXPECT_EQ(waited.error().rank, Rank{0});
  EXPECT_THAT(waited.error().message,
              HasSubstr("rank 0, which served the rendezvous at " + address + ", is gone: the connection is closed"));
}

TEST_P(ClientTest, a_forked_child_is_told_and_says_no_goodbye) {
  TestServer job(GetParam(), 2);
  auto zero = job.join(0);
  const auto one = job.join(1);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const auto called = zero->set("from", "child", Deadline::after(milliseconds(100)));
    const bool told = !called.ok() && called.error().message.find("forked") != std::string::npos;
    zero.reset();
    ::_exit(told ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(zero->set("from", "parent", patience()).ok());
  EXPECT_EQ(one->get("from", patience()).value(), "parent");
  EXPECT_EQ(job.server().counters().members, 2U);
}

TEST(Client, waits_for_a_server_that_is_not_there_yet) {
  const auto address = Address::random_unix();
  std::jthread rank([&] {
    const auto store = join({.address = address, .secret = std::nullopt}, patience());
    EXPECT_TRUE(store.ok());
  });
  std::this_thread::sleep_for(milliseconds(30));
  const auto server = Server::start({.listen = {address}, .secret = Secret::make().value()});
  ASSERT_TRUE(server.ok());
  rank.join();
}

TEST(Client, says_where_nobody_answers) {
  const auto address = Address::random_unix();
  const auto waited = join({.address = address, .secret = std::nullopt}, Deadline::after(milliseconds(20)));
  ASSERT_FALSE(waited.ok());
  EXPECT_EQ(waited.error().code, Code::timed_out);
  EXPECT_THAT(waited.error().message, HasSubstr(address.text()));

  const auto at_once = join({.address = address, .secret = std::nullopt, .wait_for_server = false}, Deadline::never());
  ASSERT_FALSE(at_once.ok());
  EXPECT_EQ(at_once.error().code, Code::not_found);
}

TEST(Client, does_not_wait_longer_than_its_deadline_for_a_silent_server) {
  const auto listening_address = Address{.kind = Address::Kind::tcp, .name = "127.0.0.1", .port = 0};
  TestServer other(Address::Kind::tcp, 1);  // only for a secret
  const FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&name), sizeof(name)), 0);
  ASSERT_EQ(::listen(socket.get(), 3), 0);
  socklen_t size = sizeof(name);
  ASSERT_EQ(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&name), &size), 0);
  auto address = listening_address;
  address.port = ntohs(name.sin_port);
  const auto joined = join({.address = address, .secret = other.secret()}, Deadline::after(milliseconds(50)));
  ASSERT_FALSE(joined.ok());
  EXPECT_EQ(joined.error().code, Code::timed_out);
  EXPECT_THAT(joined.error().message, HasSubstr(address.text()));
}

TEST(Client, tcp_without_a_secret_is_an_error) {
  const auto joined = join({.address = Address::parse("tcp:127.0.0.1:1").value(), .secret = std::nullopt}, patience());
  ASSERT_FALSE(joined.ok());
  EXPECT_EQ(joined.error().code, Code::invalid_argument);
}

TEST(Client, refuses_a_store_of_another_user) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "needs two users";
  }
  const auto address = Address::random_unix();
  const pid_t stranger = ::fork();
  ASSERT_GE(stranger, 0);
  if (stranger == 0) {
    if (::setuid(65534) != 0) {
      ::_exit(1);
    }
    const auto server = Server::start({.listen = {address}, .secret = Secret({})});
    ::pause();
    ::_exit(0);
  }
  const auto joined = join({.address = address, .secret = std::nullopt}, patience());
  ASSERT_FALSE(joined.ok());
  EXPECT_EQ(joined.error().code, Code::refused);
  EXPECT_THAT(joined.error().message, HasSubstr("another user (uid 65534"));
  ::kill(stranger, SIGKILL);
  ::waitpid(stranger, nullptr, 0);
}

}  // namespace
}  // namespace tutti::rendezvous
