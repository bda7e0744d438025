// mesh["dp", "cp"] needs a compiler that takes several subscripts: this file alone is compiled as C++23.

#include <gtest/gtest.h>

#include "tutti/comm/mesh.h"
#include "tutti/comm/world.h"

namespace tutti {
namespace {

#if defined(__cpp_multidimensional_subscript)
TEST(MeshCxx23, SeveralAxesInOneSubscript) {
  run_ranks(8, [](World& world) {
    const auto mesh = world.mesh("dp=2,cp=2,tp=2");
    EXPECT_EQ((mesh["dp", "cp"].text()), "dp=2,cp=2");
    EXPECT_EQ((mesh["dp", "cp"].ranks()), mesh["dp,cp"].ranks());
    EXPECT_EQ((mesh["tp", "dp", "cp"].text()), "tp=2,dp=2,cp=2");
  });
}
#else
TEST(MeshCxx23, SeveralAxesInOneSubscript) { GTEST_SKIP() << "this compiler takes one subscript only"; }
#endif

}  // namespace
}  // namespace tutti
