#include "tutti/base/mesh_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

MeshLayout mesh(std::string_view text, int world_size) {
  auto layout = MeshLayout::parse(text, world_size);
  EXPECT_TRUE(layout.ok()) << layout.error().message;
  return std::move(layout).value();
}

std::string complaint(std::string_view text, int world_size) {
  const auto layout = MeshLayout::parse(text, world_size);
  return layout.ok() ? "no complaint" : layout.error().message;
}

TEST(MeshLayout, LastAxisVariesFastest) {
  const auto layout = mesh("dp=2,tp=3", 6);
  EXPECT_THAT(layout.coordinate(Rank{0}), ElementsAre(0, 0));
  EXPECT_THAT(layout.coordinate(Rank{1}), ElementsAre(0, 1));
  EXPECT_THAT(layout.coordinate(Rank{5}), ElementsAre(1, 2));
  for (int rank = 0; rank < 6; ++rank) {
    EXPECT_EQ(layout.rank(layout.coordinate(Rank{rank})), Rank{rank});
  }
}

TEST(MeshLayout, SliceKeepsTheOtherCoordinates) {
  const auto layout = mesh("pp=2,dp=3,tp=2", 12);
  EXPECT_THAT(layout.slice(Rank{9}, {"dp"}).value(), ElementsAre(Rank{7}, Rank{9}, Rank{11}));
  EXPECT_THAT(layout.slice(Rank{9}, {"tp"}).value(), ElementsAre(Rank{8}, Rank{9}));
  EXPECT_THAT(layout.slice(Rank{9}, {"pp", "tp"}).value(), ElementsAre(Rank{2}, Rank{3}, Rank{8}, Rank{9}));
}

TEST(MeshLayout, SliceFollowsTheOrderAsked) {
  const auto layout = mesh("dp=2,cp=2", 4);
  EXPECT_THAT(layout.slice(Rank{0}, {"cp", "dp"}).value(), ElementsAre(Rank{0}, Rank{2}, Rank{1}, Rank{3}));
  EXPECT_EQ(layout.keep({"cp", "dp"}).value().text(), "cp=2,dp=2");
}

TEST(MeshLayout, StarTakesWhatIsLeft) {
  EXPECT_EQ(mesh("dp=*,tp=3", 15).text(), "dp=5,tp=3");
  EXPECT_EQ(mesh(" dp = * ", 7).text(), "dp=7");
  EXPECT_THAT(complaint("dp=*,tp=2", 7), HasSubstr("7 ranks cannot be divided by 2"));
  EXPECT_THAT(complaint("dp=*,tp=*", 4), HasSubstr("only one axis can be *"));
}

TEST(MeshLayout, SaysWhatIsWrong) {
  EXPECT_THAT(complaint("dp=2,tp=2", 6), HasSubstr("mesh dp=2,tp=2 has 4 ranks; the world has 6"));
  EXPECT_THAT(complaint("dp=4,tp=2", 6), HasSubstr("needs at least 8 ranks; the world has 6"));
  EXPECT_THAT(complaint("dp=2,dp=3", 6), HasSubstr("axis 'dp' is named twice"));
  EXPECT_THAT(complaint("dp", 6), HasSubstr("write it as name=size"));
  EXPECT_THAT(complaint("dp=0", 6), HasSubstr("from 1 on"));
  EXPECT_THAT(complaint("dp=-1", 6), HasSubstr("from 1 on"));
  EXPECT_THAT(complaint("dp=2x", 2), HasSubstr("from 1 on"));
  EXPECT_THAT(complaint("dp=99999999999999999999", 2), HasSubstr("from 1 on"));
  EXPECT_THAT(complaint("=2", 2), HasSubstr("a name is letters"));
  EXPECT_THAT(complaint("2d=2", 2), HasSubstr("a name is letters"));
  EXPECT_THAT(complaint("dp=2,", 2), HasSubstr("name=size"));
  EXPECT_THAT(complaint("  ", 1), HasSubstr("no axes given"));
}

TEST(MeshLayout, SizesThatOverflowAreRefused) {
  EXPECT_THAT(complaint("a=65536,b=65536,c=65536,d=65536,e=65536", 1 << 20), HasSubstr("ranks; the world has"));
}

TEST(MeshLayout, UnknownAndRepeatedAxesAreNamed) {
  const auto layout = mesh("dp=2,tp=2", 4);
  EXPECT_THAT(layout.find("cp").error().message, HasSubstr("no axis 'cp'; it has dp, tp"));
  EXPECT_THAT(layout.slice(Rank{0}, {"dp", "dp"}).error().message, HasSubstr("asked for twice"));
  EXPECT_FALSE(layout.keep({}).ok());
}

TEST(MeshLayout, TextRoundTrips) {
  for (const auto* text : {"dp=1", "dp=2,tp=2", "pp=3,dp=5,cp=1,tp=7"}) {
    const int size = std::string_view(text).starts_with("pp") ? 105 : std::string_view(text) == "dp=1" ? 1 : 4;
    EXPECT_EQ(mesh(text, size).text(), text);
  }
}

TEST(SplitNames, DropsSpaces) {
  EXPECT_THAT(split_names("dp, cp"), ElementsAre("dp", "cp"));
  EXPECT_THAT(split_names("dp"), ElementsAre("dp"));
}

}  // namespace
}  // namespace tutti
