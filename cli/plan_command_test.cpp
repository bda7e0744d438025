#include "cli/plan_command.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/test_said.h"

namespace tutti::cli {
namespace {

using testing::HasSubstr;

Said plan(const std::vector<std::string>& arguments) {
  return said_by([&] { return plan_command(arguments); });
}

TEST(PlanCommand, ShowsEveryRanksSteps) {
  const auto said = plan({"show", "ring", "-n", "3"});
  EXPECT_EQ(said.code, 0);
  EXPECT_THAT(said.out, HasSubstr("no rank sends more than 4 messages, 1.333 blocks; 4 messages wait for each other"));
  EXPECT_THAT(said.out, HasSubstr("rank 2\n    0  send input 1 to rank 0\n"));
}

TEST(PlanCommand, JsonHasAllOfIt) {
  const auto said = plan({"show", "all", "--op", "broadcast", "-n", "5", "--root", "3", "--json"});
  EXPECT_EQ(said.code, 0);
  const auto plans = nlohmann::json::parse(said.out);
  ASSERT_EQ(plans.size(), 4);
  EXPECT_EQ(plans[0].at("algorithm"), "tree");
  EXPECT_EQ(plans[0].at("ranks").size(), 5);
  EXPECT_EQ(plans[0].at("ranks")[3].at("steps")[0].at("kind"), "combine");
}

TEST(PlanCommand, DrawsIntoAFile) {
  const auto file = std::filesystem::temp_directory_path() / "tutti-plan-command-test.svg";
  EXPECT_EQ(plan({"show", "tree", "--svg", file.string()}).code, 0);
  std::stringstream text;
  text << std::ifstream(file).rdbuf();
  EXPECT_THAT(text.str(), HasSubstr("</svg>"));
  std::filesystem::remove(file);
  const auto nowhere = plan({"show", "tree", "--svg", "/nowhere/at/all.svg"});
  EXPECT_EQ(nowhere.code, 2);
  EXPECT_THAT(nowhere.errors, HasSubstr("cannot write /nowhere/at/all.svg: No such file or directory"));
}

TEST(PlanCommand, ProvesRangesOfRanks) {
  const auto said = plan({"check", "all", "--op", "all", "-n", "2..9"});
  EXPECT_EQ(said.code, 0);
  EXPECT_THAT(said.out, HasSubstr("200 plans proved"));
  EXPECT_THAT(plan({"check", "all", "--op", "all", "-n", "2..5", "--chunks", "3"}).out, HasSubstr("100 plans proved"));
  EXPECT_THAT(plan({"check", "hybrid", "-n", "7", "--hosts", "3,2,2", "--leaders", "2"}).out, HasSubstr("1 plans"));
}

TEST(PlanCommand, RefusesWithASentence) {
  for (const auto& [arguments, sentence] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{}, "A subcommand is required"},
           {{"show", "rong"}, "no algorithm 'rong'; there are ring"},
           {{"show", "ring", "-n", "two"}, "--ranks two: a number from 1 to 65536, or a range"},
           {{"show", "ring", "-n", "2..3"}, "--ranks: one number"},
           {{"check", "ring", "-n", "5..3"}, "--ranks 5..3"},
           {{"show", "ring", "--op", "gather"}, "no ring for gather"},
           {{"show", "bruck", "--op", "all_to_all", "--chunks", "2"},
            "bruck for all_to_all is not divided into chunks"},
           {{"show", "hybrid", "-n", "4", "--hosts", "2,1"}, "that is 3 ranks, and there are 4"},
           {{"show", "hybrid", "-n", "4", "--hosts", "2,,2"}, "ranks of each host, e.g. 4,4"},
           {{"show", "tree", "--op", "reduce", "--root", "4"}, "root 4 of 4 ranks"},
           {{"show", "--svg", "x.svg"}, "--svg: name one algorithm"},
           {{"show", "ring", "-n", "3", "--chunks", "2147483648"},
            "2147483648 chunks; a plan has at least one chunk, and 4096 at most"},
           {{"check", "ring", "-n", "3", "--chunks", "1431655765"},
            "1431655765 chunks; a plan has at least one chunk, and 4096 at most"},
           {{"check", "ring", "-n", "3", "--chunks", "20000"},
            "20000 chunks; a plan has at least one chunk, and 4096 at most"},
           {{"show", "ring", "-n", "100000"}, "--ranks 100000: a number from 1 to 65536"},
           {{"show", "ring", "-n", "2147483648"}, "--ranks 2147483648: a number from 1 to 65536"},
           {{"check", "-n", "1..1000000"}, "--ranks 1..1000000: a number from 1 to 65536, or a range such as 2..64"},
           {{"check", "-n", "1..60000"}, "60000 ranks"},
           {{"show", "ring", "-n", "60000"}, "too large to be followed here"},
           {{"check", "ring", "-n", "3000"},
            "ring all_reduce, 3000 ranks, 3000 pieces of a block: too large to be followed here"},
           {{"check", "all", "-n", "1024"}, "too large to be followed here"},
           {{"show", "ring", "--leaders", "2"}, "--leaders: of hybrid all_reduce alone, not of ring all_reduce"},
           {{"show", "ring", "--hosts", "2,2"}, "--hosts: of hybrid all_reduce alone"},
           {{"check", "--op", "gather", "--inner", "ring"}, "--inner: of hybrid all_reduce alone, not of all gather"},
           {{"check", "tree", "--outer", "ring"}, "--outer: of hybrid all_reduce alone"},
           {{"check", "ring", "--root", "1"}, "--root: of broadcast, reduce, gather and scatter, not of all_reduce"},
           {{"show", "hybrid", "--inner", "nope"}, "--inner: inside of a host there are direct, ring, tree, not nope"},
           {{"show", "hybrid", "--outer", "bruck"}, "one_shot, direct, not bruck"}}) {
    const auto said = plan(arguments);
    EXPECT_EQ(said.code, 2);
    EXPECT_THAT(said.errors, HasSubstr(sentence));
    EXPECT_EQ(std::count(said.errors.begin(), said.errors.end(), '\n'), 1) << said.errors;
    EXPECT_EQ(said.out, "");
  }
}

}  // namespace
}  // namespace tutti::cli
