// The conformance suite over engine `local`: ranks as threads.

#include <gtest/gtest.h>

#include "tests/conformance/suite.h"
#include <tutti/tutti.h>

namespace tutti {
namespace {

class LocalConformance : public testing::TestWithParam<int> {};

TEST_P(LocalConformance, EveryCase) {
  run_ranks(GetParam(), [](World& world) {
    EXPECT_EQ(world.group().engine(), "local");
    for (const auto& one : conformance::cases()) {
      EXPECT_NO_THROW(one.run(world.group())) << one.name << ", rank " << to_int(world.rank());
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, LocalConformance, testing::Values(1, 2, 3, 5));

}  // namespace
}  // namespace tutti
