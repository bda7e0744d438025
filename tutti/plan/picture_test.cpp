#include "tutti/plan/picture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tutti/plan/algorithms.h"

namespace tutti::plan {
namespace {

using testing::HasSubstr;
using testing::Not;

int count(const std::string& text, std::string_view part) {
  int times = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++times;
  }
  return times;
}

TEST(Picture, HasALineForEveryRankAndAnArrowForEveryMessage) {
  const auto plan = build({.algorithm = Algorithm::ring, .ranks = 5}).value();
  const auto svg = draw(plan);
  EXPECT_EQ(count(svg, "class='lane'"), 5);
  EXPECT_EQ(count(svg, "marker-end"), 5 * 8);
  EXPECT_EQ(count(svg, "<rect"), 5 * 4);
  EXPECT_THAT(svg, HasSubstr("<title>rank 3, step 0: send input 2 to rank 4</title>"));
  EXPECT_THAT(svg, Not(HasSubstr("#d00")));
}

TEST(Picture, ShowsWhatIsWrong) {
  auto plan = build({.algorithm = Algorithm::direct, .ranks = 3}).value();
  plan.programs[1].steps.front().span.count = 2;
  const auto flaw = prove(plan);
  ASSERT_TRUE(flaw);
  const auto svg = draw(plan, &*flaw);
  EXPECT_THAT(svg, HasSubstr("#d00"));
  EXPECT_THAT(svg, HasSubstr(flaw->sentence));
}

TEST(Picture, OfStepsThatWaitForEachOther) {
  Plan plan{.shape = {.op = Op::all_gather, .ranks = 2}, .programs = {}};
  for (const int peer : {1, 0}) {
    Program program;
    program.steps.resize(2);
    program.steps[0].kind = Step::Kind::receive;
    program.steps[0].span = {Buffer::output, 0, 1};
    program.steps[1].kind = Step::Kind::send;
    program.steps[1].span = {Buffer::input, 0, 1};
    program.steps[1].after = {0, 1};
    for (auto& step : program.steps) {
      step.peer = Rank{peer};
    }
    program.after = {0};
    plan.programs.push_back(program);
  }
  const auto flaw = prove(plan);
  ASSERT_TRUE(flaw);
  EXPECT_EQ(flaw->kind, Flaw::Kind::deadlock);
  EXPECT_EQ(count(draw(plan, &*flaw), "marker-end"), 2);
}

}  // namespace
}  // namespace tutti::plan
