#include "tutti/comm/mesh.h"

#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "tutti/comm/world.h"

namespace tutti {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

int summed(const Group& group, int value) {
  auto tensor = torch::tensor(value);
  group.all_reduce(tensor).wait();
  return tensor.item<int>();
}

TEST(Mesh, SlicesAreGroupsThroughThisRank) {
  run_ranks(6, [](World& world) {
    const auto mesh = world.mesh("dp=2,tp=3");
    const int me = to_int(world.rank());
    EXPECT_EQ(mesh.size(), 6);
    EXPECT_EQ(mesh.size("tp"), 3);
    EXPECT_THAT(mesh.coordinate(), ElementsAre(me / 3, me % 3));
    EXPECT_EQ(mesh.coordinate("tp"), me % 3);
    EXPECT_EQ(summed(mesh["dp"], me), 2 * (me % 3) + 3);
    EXPECT_EQ(summed(mesh["tp"].group(), me), 9 * (me / 3) + 3);
    EXPECT_EQ(mesh["tp"].coordinate("tp"), me % 3);
  });
}

TEST(Mesh, SeveralAxesAndFlattening) {
  run_ranks(8, [](World& world) {
    const auto mesh = world.mesh("dp=2,cp=2,tp=2");
    const int me = to_int(world.rank());
    const auto both = mesh["dp,cp"];
    EXPECT_EQ(both.text(), "dp=2,cp=2");
    EXPECT_THAT(both.coordinate(), ElementsAre(me / 4, me / 2 % 2));
    const auto flat = both.flatten("dp_cp");
    EXPECT_EQ(flat.size("dp_cp"), 4);
    EXPECT_EQ(flat.coordinate("dp_cp"), me / 2);
    EXPECT_EQ(summed(flat, 1), 4);
    EXPECT_EQ(mesh["dp_cp"].group().name(), flat.group().name());
    EXPECT_EQ(both["cp"].ranks(), mesh["cp"].ranks());
  });
}

TEST(Mesh, TheSameSliceIsTheSameGroup) {
  run_ranks(2, [](World& world) {
    const auto mesh = world.mesh("dp=2,tp=1");
    EXPECT_EQ(mesh["tp"].group().name(), mesh["tp"].group().name());
    EXPECT_EQ(mesh["dp"].group().name(), world.group().name());  // all ranks: the world's own group
  });
}

TEST(Mesh, GroupsAreMadeByTheirMembersAlone) {
  run_ranks(4, [](World& world) {
    const auto mesh = world.mesh("pp=2,dp=2");
    if (mesh.coordinate("pp") == 1) {  // the first stage never asks
      EXPECT_EQ(summed(mesh["dp"], 1), 2);
    }
  });
}

TEST(Mesh, Prints) {
  run_ranks(4, [](World& world) {
    std::ostringstream text;
    text << world.mesh("dp=2,tp=*");
    const int me = to_int(world.rank());
    EXPECT_EQ(text.str(), "mesh dp=2,tp=2: rank " + std::to_string(me) + " at (" + std::to_string(me / 2) + ", " +
                              std::to_string(me % 2) + ")");
  });
}

TEST(Mesh, ErrorsSayWhatIsWrong) {
  run_ranks(4, [](World& world) {
    const auto complaint = [&](const std::function<void()>& function) -> std::string {
      try {
        function();
      } catch (const Exception& exception) {
        EXPECT_EQ(exception.code(), Code::invalid_argument);
        return exception.what();
      }
      return "no complaint";
    };
    EXPECT_THAT(complaint([&] { world.mesh("dp=3"); }), HasSubstr("mesh dp=3 has 3 ranks; the world has 4"));
    EXPECT_THAT(complaint([&] { world.mesh("dp=2,dp=2"); }), HasSubstr("axis 'dp' is named twice"));
    const auto mesh = world.mesh("dp=2,tp=2");
    EXPECT_THAT(complaint([&] { mesh["cp"]; }), HasSubstr("no axis 'cp'; it has dp, tp"));
    EXPECT_THAT(complaint([&] { (void)mesh.size("cp"); }), HasSubstr("no axis 'cp'"));
    EXPECT_THAT(complaint([&] { mesh["dp,dp"]; }), HasSubstr("asked for twice"));
    (void)mesh["dp"].flatten("flat");
    EXPECT_THAT(complaint([&] { (void)mesh["tp"].flatten("flat"); }), HasSubstr("already names another"));
    EXPECT_THAT(complaint([&] { (void)mesh.flatten("tp"); }), HasSubstr("is an axis already"));
    EXPECT_THAT(complaint([&] { (void)mesh["tp"].flatten("a b"); }), HasSubstr("a name is letters"));
  });
}

}  // namespace
}  // namespace tutti
