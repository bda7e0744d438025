#include "tutti/plan/topology.h"

#include <sched.h>

#include <set>

#include <gmock/gmock.h>

namespace tutti::plan {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Two nodes, seven cores of two threads: node 0 has cores 0-3, node 1 has 4-6; thread t of core c is processor c + 7t.
Topology seven_cores() {
  Topology topology{.machine_cores = 7, .packages = 2, .cores = {}, .caches = {}, .nodes = {}};
  topology.nodes = {{.number = 0, .bytes = 1, .cpus = {}}, {.number = 1, .bytes = 1, .cpus = {}}};
  for (int core = 0; core < 7; ++core) {
    topology.cores.push_back({core, core + 7});
    auto& cpus = topology.nodes[core < 4 ? 0 : 1].cpus;
    cpus.insert(cpus.end(), {core, core + 7});
  }
  return topology;
}

TEST(PlaceRanks, NoneLeavesItToTheKernel) {
  for (const Placement& placement : place_ranks(seven_cores(), 3, Bind::none)) {
    EXPECT_THAT(placement.cpus, IsEmpty());
    EXPECT_THAT(placement.nodes, IsEmpty());
  }
}

TEST(PlaceRanks, CoresAreCutIntoContiguousBlocks) {
  const auto placements = place_ranks(seven_cores(), 3, Bind::core);
  ASSERT_EQ(placements.size(), 3U);
  EXPECT_THAT(placements[0].cpus, ElementsAre(0, 1, 7, 8));
  EXPECT_THAT(placements[1].cpus, ElementsAre(2, 3, 9, 10));
  EXPECT_THAT(placements[2].cpus, ElementsAre(4, 5, 6, 11, 12, 13));
  EXPECT_THAT(placements[0].nodes, ElementsAre(0));
  EXPECT_THAT(placements[2].nodes, ElementsAre(1));
}

TEST(PlaceRanks, ABlockOverTwoNodesTakesMemoryFromBoth) {
  EXPECT_THAT(place_ranks(seven_cores(), 1, Bind::core)[0].nodes, ElementsAre(0, 1));
}

TEST(PlaceRanks, EveryCoreIsUsedOnceWhateverTheNumberOfRanks) {
  for (int ranks = 1; ranks <= 7; ++ranks) {
    std::multiset<int> used;
    for (const Placement& placement : place_ranks(seven_cores(), ranks, Bind::core)) {
      EXPECT_FALSE(placement.cpus.empty()) << ranks;
      used.insert(placement.cpus.begin(), placement.cpus.end());
    }
    EXPECT_EQ(used.size(), 14U) << ranks;
    EXPECT_EQ(std::set<int>(used.begin(), used.end()).size(), 14U) << ranks;
  }
}

TEST(PlaceRanks, MoreRanksThanCoresShareRoundRobin) {
  const auto placements = place_ranks(seven_cores(), 9, Bind::core);
  EXPECT_THAT(placements[6].cpus, ElementsAre(6, 13));
  EXPECT_EQ(placements[7], placements[0]);
  EXPECT_EQ(placements[8], placements[1]);
}

TEST(PlaceRanks, NumaGivesWholeNodesInBlocks) {
  const auto placements = place_ranks(seven_cores(), 5, Bind::numa);
  EXPECT_THAT(placements[0].nodes, ElementsAre(0));
  EXPECT_EQ(placements[1], placements[0]);
  EXPECT_EQ(placements[2], placements[0]);
  EXPECT_THAT(placements[3].nodes, ElementsAre(1));
  EXPECT_EQ(placements[4], placements[3]);
  EXPECT_EQ(placements[3].cpus.size(), 6U);
}

TEST(ParseBind, KnowsThreeWords) {
  EXPECT_EQ(parse_bind("core").value(), Bind::core);
  EXPECT_EQ(parse_bind("numa").value(), Bind::numa);
  EXPECT_EQ(parse_bind("none").value(), Bind::none);
  EXPECT_THAT(parse_bind("socket").error().message, HasSubstr("'socket'"));
}

TEST(ReadTopology, AgreesWithTheAffinityMask) {
  const auto topology = read_topology();
  ASSERT_TRUE(topology.ok()) << topology.error().message;
  cpu_set_t mask;
  CPU_ZERO(&mask);
  ASSERT_EQ(sched_getaffinity(0, sizeof mask, &mask), 0);
  std::set<int> seen;
  for (const Core& core : topology.value().cores) {
    seen.insert(core.begin(), core.end());
  }
  EXPECT_EQ(static_cast<int>(seen.size()), CPU_COUNT(&mask));
  EXPECT_GE(topology.value().machine_cores, static_cast<int>(topology.value().cores.size()));
  EXPECT_FALSE(topology.value().nodes.empty());
}

TEST(ReadTopology, SeesOnlyWhatTheProcessIsBoundTo) {
  cpu_set_t before;
  CPU_ZERO(&before);
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  int last = 0;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    last = CPU_ISSET(cpu, &before) ? cpu : last;
  }
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(last, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  const auto topology = read_topology();
  sched_setaffinity(0, sizeof before, &before);
  ASSERT_TRUE(topology.ok()) << topology.error().message;
  EXPECT_THAT(topology.value().cores, ElementsAre(ElementsAre(last)));
}

}  // namespace
}  // namespace tutti::plan
