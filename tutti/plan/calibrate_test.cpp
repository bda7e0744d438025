#include "tutti/plan/calibrate.h"

#include <algorithm>
#include <cmath>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::plan {
namespace {

using testing::HasSubstr;

/// What is to be found again.
Network truth() {
  Network network;
  network.name = "two hosts";
  network.levels = {{.name = "host",
                     .members = 4,
                     .latency = 2e-7,
                     .send = {5e-8, 1 / 9e9},
                     .receive = {9e-8, 1 / 7e9},
                     .ring = {.bytes = 1 << 18, .seconds = 3e-7},
                     .meeting = {4e-7, 5e-8}},
                    {.name = "switch", .latency = 3e-5, .send = {4e-6, 0}, .receive = {6e-6, 0}, .link = 2.4e9}};
  network.levels[1].meeting = {9e-6, 1e-6};
  network.processors = {.copy = 19e9, .reduce = 60e9, .memory = 3e10};
  network.processors.caches = {{.bytes = 1 << 20, .seconds_per_byte = 5e-11},
                               {.bytes = 1 << 23, .seconds_per_byte = 1e-10, .shared = true}};
  network.processors.crowding = {{1, 1}, {2, 1.1}, {4, 1.5}};
  return network;
}

/// The same with every figure wrong.
Network guess() {
  auto network = truth();
  for (auto& level : network.levels) {
    level.latency *= 2;
    level.send.seconds *= 3;
    level.send.seconds_per_byte *= 0.5;
    level.receive.seconds *= 0.4;
    level.receive.seconds_per_byte *= 2;
    level.link *= 0.5;
    level.ring.seconds *= 0.5;
    level.meeting.seconds *= 2;
    level.meeting.seconds_per_member *= 0.3;
  }
  network.processors.copy *= 0.5;
  network.processors.reduce *= 3;
  network.processors.crowding[1].factor = network.processors.crowding[2].factor = 1;
  network.processors.caches[0].seconds_per_byte *= 3;
  network.processors.caches[1].bytes *= 2;
  return network;
}

/// Times as the model gives them, each off by up to `noise`.
std::vector<TimedPlan> timed(const std::vector<std::size_t>& sizes, const std::vector<int>& counts, double noise,
                             const Network& network = truth()) {
  std::mt19937 random(7);
  std::vector<TimedPlan> plans;
  for (const auto count : counts) {
    for (const auto algorithm :
         {Algorithm::ring, Algorithm::direct, Algorithm::recursive_doubling, Algorithm::tree, Algorithm::one_shot}) {
      for (const auto bytes : sizes) {
        TimedPlan plan{.request = {.algorithm = algorithm, .ranks = 2 * count}, .ranks_of_host = count, .bytes = bytes};
        plan.request.chunks = algorithm == Algorithm::direct || algorithm == Algorithm::one_shot ? 1 : 3;
        plan.seconds =
            simulated_seconds(plan, network).value() * std::uniform_real_distribution(1 - noise, 1 + noise)(random);
        plans.push_back(plan);
      }
    }
  }
  return plans;
}

struct Errors {
  double median = 0;
  double worst = 0;
};

Errors errors(const Network& network, const std::vector<TimedPlan>& plans) {
  std::vector<double> all;
  for (const auto& plan : plans) {
    all.push_back(std::abs(simulated_seconds(plan, network).value() / plan.seconds - 1));
  }
  std::sort(all.begin(), all.end());
  return {all[all.size() / 2], all.back()};
}

TEST(Calibrate, FindsANetworkThatExplainsThePlans) {
  const auto plans = timed({0, 256, 9'000, 300'000, 4 << 20}, {1, 2, 4}, 0);
  const auto before = errors(guess(), plans);
  EXPECT_GT(before.median, 0.2);
  EXPECT_GT(before.worst, 0.5);
  const auto found = calibrate(guess(), plans).value();
  const auto after = errors(found, plans);
  EXPECT_LT(after.median, 0.02);
  EXPECT_LT(after.worst, 0.1);
  // And others, of sizes and numbers of ranks that it has not seen.
  const auto others = errors(found, timed({1'000, 50'000, 1 << 20}, {3}, 0));
  EXPECT_LT(others.median, 0.03);
  EXPECT_LT(others.worst, 0.1);
}

TEST(Calibrate, FindsWhatLinksSaveUp) {
  auto limited = truth();
  limited.levels[1].link = 1.2e8;
  limited.levels[1].burst = 60'000;
  auto network = limited;
  network.levels[1].link *= 3;
  network.levels[1].burst = 9'000;
  const auto plans = timed({256, 9'000, 50'000, 300'000}, {1, 2, 4}, 0, limited);
  const auto after = errors(calibrate(network, plans).value(), plans);
  EXPECT_LT(after.median, 0.01);
  EXPECT_LT(after.worst, 0.1);
}

TEST(Calibrate, CachesDoNotPassEachOther) {
  auto large = truth();
  large.processors.caches = {{.bytes = 1 << 21, .seconds_per_byte = 2e-10}};
  auto network = large;
  network.processors.caches = {{.bytes = 1 << 18, .seconds_per_byte = 2e-10},
                               {.bytes = 1.2 * (1 << 18), .seconds_per_byte = 1e-12, .shared = true}};
  const auto plans = timed({0, 256, 9'000, 300'000, 4 << 20}, {1, 2, 4}, 0, large);
  const auto found = calibrate(network, plans);
  ASSERT_TRUE(found.ok());
  EXPECT_GT(found.value().processors.caches[1].bytes, found.value().processors.caches[0].bytes);
  EXPECT_LT(errors(found.value(), plans).median, 0.05);
}

TEST(Calibrate, NoiseIsAveragedOut) {
  const auto found = calibrate(guess(), timed({0, 256, 9'000, 300'000, 4 << 20}, {1, 2, 4}, 0.1)).value();
  const auto others = errors(found, timed({1'000, 50'000, 1 << 20}, {3}, 0));
  EXPECT_LT(others.median, 0.05);
  EXPECT_LT(others.worst, 0.2);
}

TEST(Calibrate, PlansTimedAtABadMomentDoNotCount) {
  auto plans = timed({0, 256, 9'000, 300'000, 4 << 20}, {1, 2, 4}, 0);
  for (std::size_t i = 5; i < plans.size(); i += 29) {
    plans[i].seconds *= 40;
  }
  const auto others = errors(calibrate(guess(), plans).value(), timed({1'000, 50'000, 1 << 20}, {3}, 0));
  EXPECT_LT(others.median, 0.06);
  EXPECT_LT(others.worst, 0.4);
}

TEST(Calibrate, WhatIsNotThereOrNotTimedStaysAsItWas) {
  auto network = guess();
  network.processors.memory = 0;
  network.processors.combine_seconds = 0;
  std::vector<TimedPlan> met{{.request = {.ranks = 4}, .ranks_of_host = 4, .seconds = 5e-6}};
  const auto found = calibrate(network, met).value();
  EXPECT_EQ(found.processors.memory, 0);
  EXPECT_EQ(found.processors.combine_seconds, 0);
  EXPECT_DOUBLE_EQ(found.levels[1].link, network.levels[1].link);
  EXPECT_DOUBLE_EQ(found.processors.copy, network.processors.copy);
  EXPECT_NEAR(found.levels[0].meeting.seconds + 4 * found.levels[0].meeting.seconds_per_member, 5e-6, 1e-7);
}

TEST(Calibrate, SaysWhatCannotBe) {
  std::vector<TimedPlan> plans{{.request = {.ranks = 4}, .bytes = 64}};
  EXPECT_THAT(calibrate(guess(), plans).error().message, HasSubstr("a plan without time"));
  plans[0].seconds = 1;
  plans[0].request.algorithm = Algorithm::bruck;
  EXPECT_FALSE(calibrate(guess(), plans).ok());
}

}  // namespace
}  // namespace tutti::plan
