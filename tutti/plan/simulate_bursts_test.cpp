#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tutti/plan/algorithms.h"
#include "tutti/plan/simulate.h"

namespace tutti::plan {
namespace {

// A microsecond of latency, and 1000 bytes in another.
constexpr double kLatency = 1e-6;
constexpr double kSpeed = 1e9;

Network apart(double burst) {
  Network network;
  network.name = "apart";
  network.levels = {{.name = "host", .members = 1},
                    {.name = "switch", .latency = kLatency, .link = kSpeed, .burst = burst}};
  return network;
}

double one_message(std::size_t bytes, const Network& network) {
  const Request request{.op = Op::reduce, .algorithm = Algorithm::direct, .ranks = 2};
  return simulate(build(request).value(), bytes, network).value().seconds;
}

TEST(Bursts, WhatIsSavedWhileRanksMeetPassesAtOnce) {
  auto network = apart(9000);
  network.levels[1].meeting = {.seconds = 9e-6};
  EXPECT_DOUBLE_EQ(one_message(5000, network), 9e-6 + kLatency);
  network.levels[1].stream = 5e9;
  EXPECT_DOUBLE_EQ(one_message(5000, network), 9e-6 + kLatency + 1e-6);
}

TEST(Bursts, NoMoreThanTheBurstIsSaved) {
  auto network = apart(2000);
  network.levels[1].meeting = {.seconds = 90e-6};
  EXPECT_DOUBLE_EQ(one_message(7000, network), 90e-6 + kLatency + 5e-6);
}

TEST(Bursts, AgainAndAgainAPlanTakesTheLongerOfItsTimeWithoutALimitAndThatOfItsBytes) {
  auto network = apart(9000);
  network.levels[1].send = {.seconds = 3e-6};
  const auto without = 3e-6 + kLatency;
  EXPECT_DOUBLE_EQ(one_message(3000, network), without);
  EXPECT_DOUBLE_EQ(one_message(7000, network), 7e-6);
  network.levels[1].burst = 0;
  EXPECT_DOUBLE_EQ(one_message(3000, network), without + 3e-6);
}

TEST(Bursts, NothingIsSavedWhileSomethingCrosses) {
  const Request request{.op = Op::broadcast, .algorithm = Algorithm::direct, .ranks = 3};
  const auto plan = build(request).value();
  // Two messages share the link up of the root: it has what the latency of the run before let it save, and no more.
  EXPECT_NEAR(simulate(plan, 8000, apart(5000)).value().seconds, 16e-6, 1e-12);
}

TEST(Bursts, HostsHaveNoLinksThatCouldSave) {
  auto network = apart(0);
  network.levels[0].burst = 1;
  EXPECT_THAT(check(network, 2).error().message, testing::HasSubstr("a host has no links"));
  network.levels[0].burst = 0;
  network.levels[1].burst = -1;
  EXPECT_THAT(check(network, 2).error().message, testing::HasSubstr("not negative"));
}

}  // namespace
}  // namespace tutti::plan
