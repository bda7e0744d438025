#include "tutti/plan/simulate.h"

#include <bit>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tutti/plan/algorithms.h"
#include "tutti/plan/builder.h"

namespace tutti::plan {
namespace {

using testing::HasSubstr;

// Round numbers, so that times can be computed by hand: a microsecond of latency, 1 GB/s.
constexpr double kLatency = 1e-6;
constexpr double kSpeed = 1e9;

/// Hosts of one rank at one switch.
Network apart() {
  Network network;
  network.name = "apart";
  network.levels = {{.name = "host", .members = 1}, {.name = "switch", .latency = kLatency, .link = kSpeed}};
  return network;
}

Simulated of(const Request& request, std::size_t bytes, const Network& network) {
  return simulate(build(request).value(), bytes, network).value();
}

TEST(Simulate, TwoRanksOneMessage) {
  auto network = apart();
  const Request request{.op = Op::reduce, .algorithm = Algorithm::direct, .ranks = 2};
  EXPECT_DOUBLE_EQ(of(request, 1000, network).seconds, kLatency + 1e-6);
  network.levels[1].send = {.seconds = 3e-6, .seconds_per_byte = 1e-9};
  network.levels[1].receive = {.seconds = 5e-6, .seconds_per_byte = 2e-9};
  network.processors = {.reduce = 0.5e9, .combine_seconds = 7e-6};
  const auto simulated = of(request, 1000, network);
  EXPECT_DOUBLE_EQ(simulated.seconds, kLatency + 1e-6 + (3e-6 + 1e-6) + (5e-6 + 2e-6) + (7e-6 + 2e-6));
  EXPECT_DOUBLE_EQ(simulated.spent.latency, 1e-6);
  EXPECT_DOUBLE_EQ(simulated.spent.transfer, 1e-6);
  EXPECT_DOUBLE_EQ(simulated.spent.messages, 11e-6);
  EXPECT_DOUBLE_EQ(simulated.spent.reduction, 9e-6);
  EXPECT_DOUBLE_EQ(simulated.ends[0], simulated.seconds);
  EXPECT_NEAR(simulated.ends[1], 4e-6, 1e-15);  // buffered: the sender is done when it has handed it over
}

TEST(Simulate, ALongMessageWaitsForItsReceiver) {
  auto network = apart();
  network.levels[1].eager_bytes = 999;
  network.processors = {.copy = 1e9};
  // The receiver copies its own block first, and then asks for what the sender has.
  const Request request{.op = Op::gather, .algorithm = Algorithm::direct, .ranks = 2};
  EXPECT_DOUBLE_EQ(of(request, 999, network).ends[1], 0);
  EXPECT_DOUBLE_EQ(of(request, 1000, network).ends[1], 1e-6);
}

TEST(Simulate, WhoWaitsForWhomDoesNotChangeTheOrder) {
  // Everybody wants everything from the beginning: it is all the same whether senders wait for that.
  auto network = apart();
  network.levels[0].members = 3;
  network.levels[0].send = {1e-7, 1e-9};
  const Request request{.algorithm = Algorithm::direct, .ranks = 9};
  const auto eager = of(request, 64 * 9 * 10, network).seconds;
  network.levels[0].eager_bytes = 0;
  network.levels[1].eager_bytes = 0;
  EXPECT_DOUBLE_EQ(of(request, 64 * 9 * 10, network).seconds, eager);
}

TEST(Simulate, RingOnEqualLinksIsTheFormula) {
  for (const int n : {2, 3, 8, 13}) {
    const auto bytes = static_cast<std::size_t>(64 * n * 5);
    auto network = apart();
    network.processors = {.reduce = 2e9};
    const auto slice = static_cast<double>(bytes) / n;
    const auto simulated = of({.algorithm = Algorithm::ring, .ranks = n}, bytes, network);
    EXPECT_NEAR(simulated.seconds, 2 * (n - 1) * (kLatency + slice / kSpeed) + (n - 1) * slice / 2e9, 1e-14) << n;
    EXPECT_NEAR(simulated.links[0].bytes, 2 * (n - 1) * slice, 1e-6);
    EXPECT_NEAR(simulated.links[0].busy, 2 * (n - 1) * slice / kSpeed, 1e-14);
  }
}

TEST(Simulate, DoublingAndHalvingAreTheirFormulas) {
  for (const int n : {2, 4, 16}) {
    const auto bytes = static_cast<std::size_t>(64 * n * 3);
    const auto steps = std::countr_zero(static_cast<unsigned>(n));
    const auto whole = static_cast<double>(bytes) / kSpeed;
    EXPECT_NEAR(of({.algorithm = Algorithm::recursive_doubling, .ranks = n}, bytes, apart()).seconds,
                steps * (kLatency + whole), 1e-14);
    EXPECT_NEAR(of({.algorithm = Algorithm::halving_doubling, .ranks = n}, bytes, apart()).seconds,
                2 * (steps * kLatency + whole * (n - 1) / n), 1e-14);
  }
}

TEST(Simulate, ATreeSendsToItsChildrenAtOnce) {
  // Three ranks: both children's bytes come to the root through its one link, and leave it so.
  const auto simulated = of({.algorithm = Algorithm::tree, .ranks = 3}, 1000, apart());
  EXPECT_NEAR(simulated.seconds, 2 * (kLatency + 2e-6), 1e-14);
  EXPECT_NEAR(simulated.spent.transfer, 2e-6, 1e-14);
  EXPECT_NEAR(simulated.spent.sharing, 2e-6, 1e-14);
}

TEST(Simulate, TwoAtOnceOnOneLinkTakeTwiceAsLong) {
  // Two hosts of two ranks: both ranks of the one send to both of the other.
  auto network = apart();
  network.levels[0].members = 2;
  Plan plan{.shape = {.op = Op::all_to_all, .ranks = 4}, .programs = {}};
  for (int rank = 0; rank < 4; ++rank) {
    Builder builder(plan.shape, Rank{rank});
    if (rank < 2) {
      builder.send(Rank{rank + 2}, builder.input());
    } else {
      builder.receive(Rank{rank - 2}, builder.output());
    }
    plan.programs.push_back(std::move(builder).take());
  }
  EXPECT_DOUBLE_EQ(simulate(plan, 1000, network).value().seconds, kLatency + 2e-6);
  network.levels[1].stream = kSpeed / 2;  // neither could go faster anyway
  EXPECT_DOUBLE_EQ(simulate(plan, 1000, network).value().seconds, kLatency + 2e-6);
  plan.programs[1] = {};
  plan.programs[3] = {};
  EXPECT_DOUBLE_EQ(simulate(plan, 1000, network).value().seconds, kLatency + 2e-6);
  network.levels[1].stream = 0;
  EXPECT_DOUBLE_EQ(simulate(plan, 1000, network).value().seconds, kLatency + 1e-6);
}

TEST(Simulate, AShareGrowsWhenOthersAreDone) {
  // Rank 0 sends 1000 bytes to rank 1 and 3000 to rank 2: half the link each, then the rest with all of it.
  Plan plan{.shape = {.op = Op::scatter, .ranks = 3, .pieces = 1}, .programs = {}};
  Builder root(plan.shape, Rank{0});
  root.send(Rank{1}, {Buffer::input, 0, 1});
  root.send(Rank{2}, {Buffer::input, 0, 3});
  plan.programs.push_back(std::move(root).take());
  for (const std::uint32_t count : {1, 3}) {
    Builder builder(plan.shape, Rank{count == 1 ? 1 : 2});
    const auto place = builder.scratch(count);
    builder.receive(Rank{0}, place, {Buffer::input, 0, count});
    plan.programs.push_back(std::move(builder).take());
  }
  const auto simulated = simulate(plan, 1000, apart()).value();
  EXPECT_NEAR(simulated.ends[1], 2e-6 + kLatency, 1e-14);
  EXPECT_NEAR(simulated.ends[2], 4e-6 + kLatency, 1e-14);
}

TEST(Simulate, AStragglingLinkHoldsARingUp) {
  auto network = apart();
  const Request request{.algorithm = Algorithm::ring, .ranks = 5};
  const auto whole = of(request, 64 * 5 * 100, network).seconds;
  network.slow = {{.level = 1, .group = 3, .factor = 0.1}};
  const auto slow = of(request, 64 * 5 * 100, network);
  // Its link is busy all the time with its eight slices, and the one next to it has to wait.
  EXPECT_NEAR(slow.links[6].busy, 8 * 6400 / (0.1 * kSpeed), 1e-12);
  EXPECT_GT(slow.seconds, 8 * 6400 / (0.1 * kSpeed));
  EXPECT_GT(slow.seconds, 5 * whole);
}

TEST(Simulate, RanksShareCoresAndMemory) {
  // Four ranks of a host copy their own blocks: one source, one copy.
  Network network;
  network.processors.copy = 1e9;
  network.levels = {{.name = "host"}};
  Plan plan{.shape = {.op = Op::all_reduce, .ranks = 4}, .programs = {}};
  for (int rank = 0; rank < 4; ++rank) {
    Builder builder(plan.shape, Rank{rank});
    builder.copy(builder.scratch(1), builder.input());
    plan.programs.push_back(std::move(builder).take());
  }
  EXPECT_DOUBLE_EQ(simulate(plan, 1000, network).value().seconds, 1e-6);
  network.processors.cores = 2;
  EXPECT_DOUBLE_EQ(simulate(plan, 1000, network).value().seconds, 2e-6);
  network.processors.crowding = {{1, 1}, {4, 1.25}};
  EXPECT_DOUBLE_EQ(simulate(plan, 1000, network).value().seconds, 2.5e-6);
  network.processors.crowding.clear();
  network.processors.cores = 3;  // one of them has two ranks
  EXPECT_DOUBLE_EQ(simulate(plan, 1000, network).value().seconds, 2e-6);
  network.processors.cores = 4;
  network.processors.memory = 1e9;
  EXPECT_DOUBLE_EQ(simulate(plan, 1000, network).value().seconds, 4e-6);
}

/// One host; a microsecond for each turn at a ring, half of one until bytes are seen, 1 GB/s at both ends.
Network ringed(std::uint64_t bytes) {
  Network network;
  network.levels = {{.name = "host",
                     .latency = 0.5e-6,
                     .send = {0, 1e-9},
                     .receive = {0, 1e-9},
                     .ring = {.bytes = bytes, .seconds = 1e-6}}};
  return network;
}

TEST(Simulate, WhatIsLongerThanARingGoesInPortions) {
  const Request request{.op = Op::reduce, .algorithm = Algorithm::direct, .ranks = 2};
  EXPECT_NEAR(of(request, 1000, ringed(1000)).seconds, 2e-6 + 0.5e-6 + 2e-6, 1e-14);
  // 400, 400 and 200 bytes, each written when the one before has been read.
  EXPECT_NEAR(of(request, 1000, ringed(400)).seconds, 3 * (2e-6 + 0.5e-6) + 2e-6, 1e-14);
  // Three ranks share what there is: 4096 bytes are not 3 * 3 * 512, so that pairs get 256 each.
  auto shared = ringed(1000);
  shared.levels[0].ring.host_bytes = 4096;
  EXPECT_NEAR(of({.op = Op::broadcast, .algorithm = Algorithm::tree, .ranks = 2}, 1000, shared).seconds, 4.5e-6, 1e-14);
  EXPECT_EQ(Fabric(shared, 3).network().levels[0].ring.bytes, 256U);
}

TEST(Simulate, WhereRanksOutnumberCoresWhoWaitedHasItsCoreLater) {
  const Request request{.op = Op::broadcast, .algorithm = Algorithm::binomial, .ranks = 2};
  auto network = ringed(1000);
  network.processors.switch_seconds = 4e-6;
  network.processors.cores = 2;
  const auto apart = of(request, 1000, network).seconds;
  network.processors.cores = 1;
  // Once to meet, once when the message has come.
  EXPECT_NEAR(of(request, 1000, network).seconds, apart + 8e-6, 1e-14);
}

TEST(Simulate, AMessageCostsOnceHoweverManyPortionsItHas) {
  const Request request{.op = Op::broadcast, .algorithm = Algorithm::binomial, .ranks = 2};
  auto network = ringed(400);
  const auto before = of(request, 1000, network).seconds;
  network.levels[0].send.seconds = 3e-6;
  network.levels[0].receive.seconds = 5e-6;
  EXPECT_NEAR(of(request, 1000, network).seconds, before + 8e-6, 1e-14);
  network.levels[0].send.ramp = 2e-6;
  network.levels[0].send.ramp_bytes = 1000;  // half of it
  EXPECT_NEAR(of(request, 1000, network).seconds, before + 9e-6, 1e-14);
}

TEST(Simulate, WhatIsLongThroughARingIsAskedForOnce) {
  const Request request{.op = Op::broadcast, .algorithm = Algorithm::binomial, .ranks = 2};
  auto network = ringed(1000);
  network.levels[0].eager_bytes = 400;
  const auto portion = [](double bytes) { return 2 * (1e-6 + bytes * 1e-9) + 0.5e-6; };
  EXPECT_NEAR(of(request, 400, network).seconds, portion(400), 1e-14);
  EXPECT_NEAR(of(request, 1000, network).seconds, portion(400) + 0.5e-6 + portion(600), 1e-14);
  network.levels[0].ring.answer = 3e-6;  // at either end
  const auto asked = of(request, 1000, network);
  EXPECT_NEAR(asked.seconds, portion(400) + 6.5e-6 + portion(600), 1e-14);
  EXPECT_NEAR(asked.spent.total(), asked.seconds, 1e-12);
  network.levels[0].ring.answer = 0;
  network.levels[0].eager_bytes = 0;
  EXPECT_NEAR(of(request, 1000, network).seconds, portion(1) + 0.5e-6 + portion(999), 1e-14);
}

TEST(Simulate, BothEndsOfARingAreAtWorkWhenPortionsAreShorterThanIt) {
  const Request request{.op = Op::reduce, .algorithm = Algorithm::direct, .ranks = 2};
  auto network = ringed(1000);
  network.levels[0].ring.seconds = 0;
  EXPECT_NEAR(of(request, 1000, network).seconds, 1e-6 + 0.5e-6 + 1e-6, 1e-14);
  network.levels[0].ring.portion = 500;
  EXPECT_NEAR(of(request, 1000, network).seconds, 1e-6 + 0.5e-6 + 0.5e-6, 1e-14);
}

TEST(Simulate, OneTurnAtARingIsForAllThatCanBeMoved) {
  Plan plan{.shape = {.op = Op::broadcast, .ranks = 2, .pieces = 2}, .programs = {}};
  Builder root(plan.shape, Rank{0});
  Builder other(plan.shape, Rank{1});
  for (std::size_t piece = 0; piece < 2; ++piece) {
    root.send(Rank{1}, root.input().part(piece, 2));
    other.receive(Rank{0}, other.output().part(piece, 2));
  }
  plan.programs = {std::move(root).take(), std::move(other).take()};
  // The second piece is written while the first is on its way and read, and is read right after it.
  EXPECT_NEAR(simulate(plan, 1280, ringed(2000)).value().seconds, 2e-6 + 0.5e-6 + 3 * 0.64e-6, 1e-14);
}

TEST(Simulate, RanksMeetFirst) {
  auto network = apart();
  network.levels[0].members = 4;
  network.levels[0].meeting = {.seconds = 1e-6, .seconds_per_member = 2e-6};
  network.levels[1].meeting = {.seconds = 10e-6, .seconds_per_member = 5e-6};
  const auto met = of({.algorithm = Algorithm::ring, .ranks = 3}, 0, network);
  EXPECT_DOUBLE_EQ(met.seconds, 7e-6);
  EXPECT_DOUBLE_EQ(met.spent.meeting, 7e-6);
  EXPECT_DOUBLE_EQ(met.ends[2], 7e-6);
  EXPECT_DOUBLE_EQ(of({.algorithm = Algorithm::ring, .ranks = 9}, 0, network).seconds, 9e-6 + 25e-6);
  network.levels[0].members = 1;
  EXPECT_DOUBLE_EQ(of({.algorithm = Algorithm::ring, .ranks = 2}, 0, network).seconds, 20e-6);
}

TEST(Simulate, StepsOfNothingCostSomething) {
  auto network = apart();
  network.processors.step_seconds = 1e-6;
  // Only one of eight pieces has bytes; each rank still goes through all of its steps.
  const auto one = of({.algorithm = Algorithm::ring, .ranks = 2, .chunks = 1}, 64, network).seconds;
  const auto four = of({.algorithm = Algorithm::ring, .ranks = 2, .chunks = 4}, 64, network).seconds;
  EXPECT_GT(four, one + 8e-6);
}

TEST(Simulate, TheChainAccountsForAllOfTheTime) {
  auto network = apart();
  network.levels[0] = {.name = "host", .members = 4, .latency = 3e-7, .send = {1e-7, 1e-10}, .receive = {1e-7, 1e-10}};
  network.processors = {.copy = 9e9, .reduce = 5e9, .combine_seconds = 5e-8, .memory = 2e10};
  for (const auto algorithm : algorithms_for(Op::all_reduce)) {
    Request request{.algorithm = algorithm, .ranks = 13, .chunks = 3, .hosts = {{}, {}}};
    for (int rank = 0; rank < 13; ++rank) {
      request.hosts[rank < 8 ? 0 : 1].push_back(Rank{rank});
    }
    const auto simulated = of(request, 100'003, network);
    EXPECT_NEAR(simulated.spent.total(), simulated.seconds, 1e-12) << to_string(algorithm);
    EXPECT_EQ(simulated.seconds, of(request, 100'003, network).seconds) << to_string(algorithm);
    auto rings = network;
    rings.levels[0].ring = {.bytes = 4096, .seconds = 2e-7};
    rings.levels[1].ring = {.bytes = 30'000, .seconds = 2e-7};
    rings.levels[0].meeting = {.seconds = 1e-6};
    const auto through = of(request, 100'003, rings);
    EXPECT_NEAR(through.spent.total(), through.seconds, 1e-12) << to_string(algorithm);
  }
}

TEST(Simulate, EndsOrSaysWhyNot) {
  Plan plan{.shape = {.op = Op::all_reduce, .ranks = 2}, .programs = {}};
  Builder builder(plan.shape, Rank{0});
  builder.send(Rank{1}, builder.input());
  plan.programs = {std::move(builder).take(), Program{}};
  EXPECT_THAT(simulate(plan, 1000, apart()).error().message, HasSubstr("the plan never ends: 1 steps wait"));
  auto small = apart();
  small.levels[1].members = 1;
  EXPECT_THAT(simulate(plan, 1000, small).error().message, HasSubstr("2 ranks, and it has room for 1 to 1"));
}

TEST(Simulate, SaysWhatTheTimeWentTo) {
  EXPECT_EQ(describe({.latency = 3, .transfer = 6.95, .sharing = 0.05}), "70 % transfer, 30 % latency");
  EXPECT_EQ(describe({}), "nothing");
}

TEST(Simulate, WhatIsThereAlreadyIsNotCopied) {
  Network network;
  network.levels = {{.name = "host"}};
  network.processors.copy = 1e9;
  const auto plan = build({.op = Op::broadcast, .algorithm = Algorithm::direct, .ranks = 2}).value();
  EXPECT_DOUBLE_EQ(simulate(plan, 1'000'000, network).value().seconds, 0);
}

TEST(Simulate, OnlyThoseAtWorkAreACrowd) {
  // A chain of messages, one rank at a time, and an exchange of all with all.
  Network network;
  network.levels = {{.name = "host", .send = {0, 1e-9}, .receive = {0, 1e-9}}};
  const auto chain = build({.op = Op::broadcast, .algorithm = Algorithm::binomial, .ranks = 2}).value();
  const auto both = build({.op = Op::all_gather, .algorithm = Algorithm::direct, .ranks = 2}).value();
  const auto takes = [&](const Plan& plan) { return simulate(plan, 1'000'000, network).value().seconds; };
  const auto alone = takes(chain);
  const auto together = takes(both);
  network.processors.crowding = {{1, 1}, {2, 3}};
  EXPECT_DOUBLE_EQ(takes(chain), alone);
  EXPECT_NEAR(takes(both), 3 * together, 0.1 * together);
}

TEST(Simulate, LongMessagesBeginSlowly) {
  Network network;
  network.levels = {{.name = "host", .send = {.ramp = 1e-6, .ramp_bytes = 1000}}};
  const auto plan = build({.op = Op::broadcast, .algorithm = Algorithm::direct, .ranks = 2}).value();
  EXPECT_DOUBLE_EQ(simulate(plan, 1000, network).value().seconds, 0.5e-6);
  EXPECT_NEAR(simulate(plan, 1'000'000, network).value().seconds, 1e-6, 2e-9);
}

TEST(Simulate, MessagesStreamOneBehindTheOther) {
  // Three chunks go to the other host and come back: the first is on its way back while the second comes, however much
  // longer they are than a portion.
  Network network;
  network.levels = {{.name = "host", .members = 1},
                    {.name = "hosts", .ring = {.bytes = 1 << 20, .portion = 960}, .link = 1e9}};
  const auto plan = build({.algorithm = Algorithm::tree, .ranks = 2, .chunks = 3}).value();
  EXPECT_NEAR(simulate(plan, 3 * 960, network).value().seconds, 4 * 0.96e-6, 1e-12);
  network.levels[1].ring.portion = 96;
  EXPECT_NEAR(simulate(plan, 3 * 960, network).value().seconds, 4 * 0.96e-6, 1e-12);
}

TEST(Simulate, InARowTheLastHostBeginsAtOnce) {
  // One host has the sum, and has said that it came to the next one when the other gets it.
  Network network;
  network.levels = {{.name = "host", .members = 1}, {.name = "hosts", .latency = 30e-6}};
  network.levels[1].meeting.seconds = 10e-6;
  const auto there_and_back = build({.algorithm = Algorithm::tree, .ranks = 2}).value();
  EXPECT_NEAR(simulate(there_and_back, 64, network).value().seconds, 70e-6, 1e-12);
  EXPECT_NEAR(seconds_in_a_row(there_and_back, 64, network).value(), 60e-6, 1e-12);
  const auto both = build({.op = Op::all_gather, .algorithm = Algorithm::direct, .ranks = 2}).value();
  EXPECT_NEAR(seconds_in_a_row(both, 64, network).value(), simulate(both, 64, network).value().seconds, 1e-12);
}

}  // namespace
}  // namespace tutti::plan
