#include "tutti/plan/footprint.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace tutti::plan {
namespace {

Fabric host(int ranks, std::uint64_t ring) {
  Network network;
  network.levels = {{.name = "host", .ring = {.bytes = ring}}};
  return {network, ranks};
}

TEST(Footprint, BlocksScratchAndRings) {
  const auto of = [](const Request& request, std::size_t bytes, std::uint64_t ring) {
    return std::ranges::max(footprints(build(request).value(), bytes, host(request.ranks, ring)));
  };
  // A block that is summed in place, one for what the other sends, and the two rings between them.
  const Request doubling{.algorithm = Algorithm::recursive_doubling, .ranks = 2};
  EXPECT_EQ(of(doubling, 6400, 0), 2 * 6400);
  EXPECT_EQ(of(doubling, 6400, 1000), 2 * 6400 + 2 * 1000);
  EXPECT_EQ(of(doubling, 640, 1000), 4 * 640);
  // Its own block, everybody's, and what two peers send and get.
  EXPECT_EQ(of({.op = Op::all_gather, .algorithm = Algorithm::direct, .ranks = 3}, 640, 1000), 4 * 640 + 4 * 640);
}

TEST(Footprint, OneRanksProgramTellsAboutWhatAllDo) {
  for (const auto algorithm :
       {Algorithm::ring, Algorithm::direct, Algorithm::recursive_doubling, Algorithm::one_shot}) {
    const Request request{.algorithm = algorithm, .ranks = 13};
    const auto fabric = host(13, 4096);
    EXPECT_NEAR(footprint(request, 100'003, fabric),
                std::ranges::max(footprints(build(request).value(), 100'003, fabric)), 2e5)
        << to_string(algorithm);
  }
}

}  // namespace
}  // namespace tutti::plan
