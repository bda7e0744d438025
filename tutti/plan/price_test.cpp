#include "tutti/plan/price.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tutti/plan/network_json.h"
#include "tutti/plan/price_map.h"

namespace tutti::plan {
namespace {

using testing::HasSubstr;

Network fat_tree() {
  const auto folder = std::filesystem::path(__FILE__).parent_path().parent_path().parent_path() / "clusters";
  return read_network((folder / "fat-tree.json").string()).value();
}

constexpr std::size_t kMi = 1 << 20;

TEST(Price, ShortPlansAreSimulatedAndLongOnesEstimated) {
  const auto network = fat_tree();
  EXPECT_EQ(price({.algorithm = Algorithm::ring, .ranks = 24}, kMi, network).value().how, How::simulated);
  const auto ring = price({.algorithm = Algorithm::ring, .ranks = 2048}, kMi, network).value();
  EXPECT_EQ(ring.how, How::estimated);
  EXPECT_EQ(ring.messages, 2 * 2047);
  EXPECT_NEAR(ring.bus_bandwidth, 2 * 2047.0 / 2048 * kMi / ring.seconds, 1);
}

TEST(Price, FurtherChunksFollowFromAFew) {
  for (const auto& [algorithm, near] : std::vector<std::pair<Algorithm, double>>{
           {Algorithm::tree, 0.04}, {Algorithm::double_tree, 0.04}, {Algorithm::recursive_doubling, 0.05}}) {
    for (const int ranks : {32, 96, 256}) {
      const Request request{.algorithm = algorithm, .ranks = ranks, .chunks = 48};
      const auto whole = price(request, 25 * kMi, fat_tree(), {.most_simulated = 1e9}).value();
      const auto messages = whole.messages * ranks;
      const auto few = price(request, 25 * kMi, fat_tree(), {.most_simulated = messages / 5}).value();
      EXPECT_EQ(whole.how, How::simulated);
      EXPECT_EQ(few.how, How::extrapolated);
      EXPECT_NEAR(few.seconds, whole.seconds, near * whole.seconds) << to_string(algorithm) << " " << ranks;
    }
  }
}

TEST(Price, WhatGoesInTooManyPortionsIsEstimated) {
  const auto folder = std::filesystem::path(__FILE__).parent_path().parent_path().parent_path() / "clusters";
  const auto network = [&](RingCost ring) {
    auto host = read_network((folder / "one-host.json").string()).value();
    host.levels[0].ring = ring;
    return host;
  };
  constexpr std::size_t kGi = 1 << 30;
  for (const auto& ring : {RingCost{.bytes = 1}, RingCost{.bytes = 64}, RingCost{.bytes = 1 << 20, .portion = 1}}) {
    for (const auto algorithm : {Algorithm::ring, Algorithm::tree, Algorithm::one_shot}) {
      const Request request{.algorithm = algorithm, .ranks = 2, .chunks = 8};
      EXPECT_EQ(price(request, kGi, network(ring)).value().how, How::estimated);
      EXPECT_EQ(cheapest(request, kGi, network(ring)).value().how, How::estimated);
    }
  }
  const RingCost usual{.bytes = 1 << 18, .portion = 1 << 16};
  EXPECT_EQ(price({.ranks = 2}, kGi, network(usual)).value().how, How::simulated);
  EXPECT_EQ(price({.ranks = 2}, 1024 * kGi, network(usual)).value().how, How::estimated);
  const Request ring_inside{
      .algorithm = Algorithm::hybrid, .ranks = 2, .hosts = {{Rank{0}, Rank{1}}}, .inner = Algorithm::ring};
  EXPECT_THAT(price(ring_inside, kGi, network({.bytes = 1})).error().message,
              HasSubstr("take too long to be simulated"));
}

TEST(Price, PiecesWithoutEndAreRefused) {
  const Request request{.algorithm = Algorithm::hybrid, .ranks = 1000, .leaders = 8};
  const auto priced = cheapest(request, kMi, fat_tree(), {.chunks = {kMostChunks + 1}, .leaders = 8});
  ASSERT_FALSE(priced);
  EXPECT_THAT(priced.error().message, HasSubstr("4097 chunks; a plan has at least one chunk, and 4096 at most"));
}

TEST(Price, TheCheapestChunksAreTaken) {
  const auto network = fat_tree();
  const Request request{.algorithm = Algorithm::tree, .ranks = 12};
  const auto best = cheapest(request, kMi, network).value();
  EXPECT_GT(best.request.chunks, 1);
  for (const unsigned chunks : {1, 2, 4, 8, 16, 32, 64}) {
    auto one = request;
    one.chunks = chunks;
    EXPECT_LE(best.seconds, 1.05 * price(one, kMi, network).value().seconds) << chunks;
  }
  const Request bruck{.op = Op::all_to_all, .algorithm = Algorithm::bruck, .ranks = 12};
  EXPECT_EQ(cheapest(bruck, kMi, network).value().request.chunks, 1);
  EXPECT_EQ(cheapest(request, 64, network).value().request.chunks, 1);  // a line cannot be divided
}

TEST(Price, AHybridFindsItsHostsAndLeaders) {
  const auto best = cheapest({.algorithm = Algorithm::hybrid, .ranks = 24}, 25 * kMi, fat_tree()).value();
  EXPECT_EQ(best.request.hosts.size(), 3);
  EXPECT_EQ(best.request.leaders, 8);
  EXPECT_THAT(name_of(best.request), HasSubstr("hybrid, 8 leaders, "));
}

TEST(Price, RefusesWhatCannotBe) {
  EXPECT_THAT(price({.ranks = 16385}, kMi, fat_tree()).error().message, HasSubstr("it has room for 1 to 16384"));
  EXPECT_THAT(cheapest({.op = Op::gather, .algorithm = Algorithm::ring, .ranks = 4}, kMi, fat_tree()).error().message,
              HasSubstr("no ring for gather"));
  const Request rings{.algorithm = Algorithm::hybrid, .ranks = 2048, .inner = Algorithm::ring};
  EXPECT_THAT(cheapest(rings, kMi, fat_tree()).error().message, HasSubstr("priced up to 1024 ranks, not 2048"));
}

TEST(PriceMap, HasAWinnerForEachSizeAndNumberOfRanks) {
  const auto map = map_prices({{.algorithm = Algorithm::ring, .ranks = 12},
                               {.algorithm = Algorithm::recursive_doubling, .ranks = 12}},
                              fat_tree())
                       .value();
  EXPECT_EQ(map.ranks, (std::vector{2, 4, 8, 12}));
  ASSERT_EQ(map.cells.size(), 4);
  EXPECT_EQ(map.cells[3].front().winner, Algorithm::recursive_doubling);
  EXPECT_EQ(map.cells[3].back().winner, Algorithm::ring);
  ASSERT_EQ(map.seconds.size(), 2);
  EXPECT_EQ(map.seconds[0].size(), map.bytes.size());
  const auto picture = draw(map);
  EXPECT_THAT(picture, HasSubstr("</svg>"));
  EXPECT_THAT(picture, HasSubstr("12 ranks, 1 KiB: recursive_doubling"));
}

TEST(PriceMap, IsOfWhatWasAskedFor) {
  const Request hybrid{.algorithm = Algorithm::hybrid, .ranks = 32};
  const PriceOptions options{.chunks = {4}, .leaders = 2, .outer = Algorithm::ring};
  const auto map = map_prices({hybrid}, fat_tree(), options).value();
  auto coarse = options;
  coarse.most_simulated = 4000;
  ASSERT_EQ(map.seconds[0].size(), map.bytes.size());
  for (std::size_t i = 0; i < map.bytes.size(); ++i) {
    const auto one = cheapest(hybrid, map.bytes[i], fat_tree(), coarse).value();
    EXPECT_EQ(one.request.outer, Algorithm::ring);
    EXPECT_EQ(one.request.leaders, 2);
    EXPECT_EQ(one.request.chunks, 4);
    EXPECT_EQ(map.seconds[0][i], one.seconds);
  }
}

/// With a ring inside of hosts, which nobody can estimate, through rings that take a thousand portions of it.
TEST(PriceMap, WhatTakesTooLongIsLeftOut) {
  auto network = fat_tree();
  network.levels[0].ring = {.bytes = 4096, .seconds = 1e-7};
  const auto map =
      map_prices({{.algorithm = Algorithm::hybrid, .ranks = 128, .inner = Algorithm::ring}}, network).value();
  EXPECT_GT(map.seconds[0].front(), 0);
  EXPECT_EQ(map.seconds[0].back(), 0);
  EXPECT_EQ(map.cells.back().back().seconds, 0);
  EXPECT_THAT(draw(map), HasSubstr("</svg>"));
}

TEST(PriceMap, UnitsForPeople) {
  EXPECT_EQ(bytes_text(25 * kMi), "25 MiB");
  EXPECT_EQ(bytes_text(1536), "1.5 KiB");
  EXPECT_EQ(seconds_text(1.5e-6), "1.50 us");
  EXPECT_EQ(seconds_text(183), "183 s");
}

}  // namespace
}  // namespace tutti::plan
