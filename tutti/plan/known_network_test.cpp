#include "tutti/plan/known_network.h"

#include <gtest/gtest.h>

namespace tutti::plan {
namespace {

TEST(KnownNetwork, IsKeptBesideTheTuningByMachine) {
  EXPECT_EQ(network_file("/home/eve/.cache/tutti/tuning.json", "Abacus (R) 3, 7 cores", false),
            "/home/eve/.cache/tutti/networks/Abacus-R-3-7-cores.json");
  EXPECT_EQ(network_file("tuning.json", "Abacus ../3", true), "networks/Abacus-3-hosts.json");
  EXPECT_EQ(network_file("", "Abacus 3", false), "") << "nothing is to be kept";
}

}  // namespace
}  // namespace tutti::plan
