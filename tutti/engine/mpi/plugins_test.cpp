#include "tutti/engine/mpi/plugins.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::engine::mpi {
namespace {

using ::testing::HasSubstr;

const std::vector<Plugin> kPlugins{{"intelmpi", "/i"}, {"mpich", "/m"}, {"openmpi", "/o"}};

std::string chosen(const std::vector<Plugin>& plugins, const std::string& wanted, const std::string& loaded,
                   const std::string& launcher) {
  const auto plugin = choose_plugin(plugins, wanted, loaded, launcher);
  return plugin ? plugin.value().path : plugin.error().message;
}

TEST(Plugins, TheProgramsOwnMpiCountsBeforeTheLaunchers) {
  EXPECT_EQ(chosen(kPlugins, "", "", "mpich"), "/m");
  EXPECT_EQ(chosen(kPlugins, "", "openmpi", "mpich"), "/o");
  EXPECT_EQ(chosen(kPlugins, "intelmpi", "", "mpich"), "/i");
  EXPECT_EQ(chosen(kPlugins, "intelmpi", "mpich", ""), "/i");
  EXPECT_THAT(chosen(kPlugins, "mpich", "openmpi", ""), HasSubstr("this program is linked to openmpi"));
  EXPECT_EQ(chosen(kPlugins, "/some/plugin.so", "openmpi", "mpich"), "/some/plugin.so");
}

TEST(Plugins, MpichAndIntelShareAnInterface) {
  const std::vector<Plugin> only_mpich{{"mpich", "/m"}, {"openmpi", "/o"}};
  EXPECT_EQ(chosen(only_mpich, "", "", "intelmpi"), "/m");
}

TEST(Plugins, WhatIsMissingIsSaid) {
  EXPECT_THAT(chosen(kPlugins, "", "", ""), HasSubstr("not started by an MPI launcher"));
  EXPECT_THAT(chosen(kPlugins, "none", "openmpi", ""), HasSubstr("TUTTI_MPI is 'none'"));
  EXPECT_THAT(chosen({{"mpich", "/m"}}, "", "", "openmpi"), HasSubstr("no MPI like 'openmpi' (for: mpich)"));
  EXPECT_THAT(load_plugin({"x", "/there/is/none.so"}).error().message, HasSubstr("/there/is/none.so"));
}

}  // namespace
}  // namespace tutti::engine::mpi
