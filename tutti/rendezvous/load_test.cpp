#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>

#include "tutti/rendezvous/proof.h"
#include "tutti/rendezvous/socket.h"
#include "tutti/rendezvous/test_server.h"

namespace tutti::rendezvous {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kClients = 1000;
// Sanitizers slow everything down several times; there only the outcome counts.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr bool kTimed = false;
#else
constexpr bool kTimed = true;
#endif

bool many_descriptors() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur >= 5 * kClients;
}

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

class LoadTest : public OverBoth {};
INSTANTIATE_TEST_SUITE_P(Over, LoadTest, ::testing::Values(Address::Kind::unix_name, Address::Kind::tcp), kind_name);

/// Time in which a thousand ranks, each a thread with a connection of its own, join and meet.
double time_to_meet(TestServer& job) {
  std::vector<std::shared_ptr<Store>> stores(kClients);
  const auto start = Clock::now();
  {
    std::vector<std::jthread> ranks;
    for (int rank = 0; rank < kClients; ++rank) {
      ranks.emplace_back([&, rank] {
        stores[static_cast<std::size_t>(rank)] = job.join(rank);
        ASSERT_NE(stores[static_cast<std::size_t>(rank)], nullptr);
        EXPECT_TRUE(stores[static_cast<std::size_t>(rank)]->barrier("all", kClients, patience()).ok());
      });
    }
  }
  return seconds_since(start);
}

TEST_P(LoadTest, a_thousand_clients_meet_within_two_seconds) {
  if (!many_descriptors()) {
    GTEST_SKIP() << "needs " << 5 * kClients << " descriptors: raise ulimit -n";
  }
  double best = 1e9;
  for (int attempt = 0; attempt < 3 && (best > 2.0 || attempt == 0); ++attempt) {  // the machine may be busy otherwise
    TestServer job(GetParam(), kClients);
    best = std::min(best, time_to_meet(job));
  }
  std::printf("%d clients met at a barrier after %.3f s\n", kClients, best);
  if (kTimed) {
    EXPECT_LT(best, 2.0);
  }
}

/// Median time for a rank to join and leave, in milliseconds.
double time_to_join(TestServer& job) {
  std::vector<double> times;
  for (int i = 0; i < 101; ++i) {
    const auto start = Clock::now();
    const auto store = job.join(0);
    times.push_back(1e3 * seconds_since(start));
    EXPECT_NE(store, nullptr);
  }
  std::nth_element(times.begin(), times.begin() + 50, times.end());
  return times[50];
}

TEST(Load, a_thousand_silent_clients_delay_no_rank) {
  if (!many_descriptors()) {
    GTEST_SKIP() << "needs " << 5 * kClients << " descriptors: raise ulimit -n";
  }
  TestServer job(Address::Kind::tcp, 1);
  const double alone = time_to_join(job);
  std::vector<FileDescriptor> silent;
  for (int i = 0; i < kClients; ++i) {
    auto connected = connect_to(job.address(), patience());
    ASSERT_TRUE(connected.ok());
    silent.push_back(std::move(connected).value());
    if (i % 3 == 0) {
      ::send(silent.back().get(), "TUTTI-P1", 5, MSG_NOSIGNAL);  // the start of a proof that never comes
    }
  }
  ASSERT_TRUE(job.eventually([](const ServerCounters& c) { return c.strangers == kClients; }));
  const double among = time_to_join(job);
  std::printf("a rank joins in %.3f ms alone, in %.3f ms among %d silent clients (%+.1f %%)\n", alone, among, kClients,
              100 * (among / alone - 1));
  EXPECT_EQ(job.server().counters().strangers, static_cast<std::uint64_t>(kClients));
  if (kTimed) {
    EXPECT_LT(among, 2 * alone + 1);  // wide, for a busy machine: what grows with the strangers would be far beyond
  }
}

}  // namespace
}  // namespace tutti::rendezvous
