#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/plan_command.h"
#include "cli/test_said.h"

namespace tutti::cli {
namespace {

using nlohmann::ordered_json;
using testing::HasSubstr;

Said check(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "check");
  return said_by([&] { return plan_command(arguments); });
}

class CheckFrom : public testing::Test {
 protected:
  CheckFrom() { std::filesystem::create_directories(folder_); }
  ~CheckFrom() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  /// As shown, then changed.
  std::string shown(std::vector<std::string> arguments, const std::function<void(ordered_json&)>& change = {}) const {
    arguments.insert(arguments.begin(), "show");
    arguments.emplace_back("--json");
    auto json = ordered_json::parse(said_by([&] { return plan_command(arguments); }).out);
    if (change) {
      change(json[0]);
    }
    return written(json.dump());
  }

  std::string written(const std::string& text) const {
    std::ofstream(path("plan.json")) << text;
    return path("plan.json");
  }

 private:
  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("tutti-plan-check-" + std::to_string(::getpid()));
};

ordered_json& step(ordered_json& json, std::size_t rank, std::size_t number) {
  return json["ranks"][rank]["steps"][number];
}

TEST_F(CheckFrom, ProvesWhatWasShown) {
  EXPECT_THAT(check({"--from", shown({"ring", "-n", "3", "--chunks", "2"})}).out, HasSubstr("1 plans proved"));
  EXPECT_THAT(check({"--from", shown({"all", "--op", "gather", "-n", "5", "--root", "3"})}).out,
              HasSubstr("2 plans proved"));
}

TEST_F(CheckFrom, SaysWhichRankAndStepAndPieces) {
  struct Damage {
    std::function<void(ordered_json&)> change;
    std::string sentence;
  };
  for (const auto& [change, sentence] : std::vector<Damage>{
           {[](ordered_json& json) { step(json, 1, 2)["after"] = ordered_json::array(); },
            "race: rank 1, step 2: output 2 = scratch 0 + input 2: it does not wait for rank 1, step 1: receive "
            "scratch 0 "
            "from rank 0, and both touch scratch 0"},
           {[](ordered_json& json) { step(json, 1, 0)["peer"] = 0; },
            "unmatched: rank 1, step 0: send input 0 to rank 0: nobody receives it"},
           {[](ordered_json& json) { step(json, 1, 0)["peer"] = 7; },
            "malformed: rank 1, step 0: send input 0 to rank 7: no such peer"},
           {[](ordered_json& json) { step(json, 2, 0)["span"]["begin"] = 4294967295U; },
            "malformed: rank 2, step 0: send input 4294967295 to rank 0: there are no such pieces"},
           {[](ordered_json& json) { step(json, 2, 3)["after"] = {4000000000U}; },
            "malformed: rank 2, step 3: send output 0 to rank 0: it waits for step 4000000000, which comes later"},
           {[](ordered_json& json) {
              for (std::size_t rank = 0; rank < 3; ++rank) {
                step(json, rank, 1)["after"] = {0};
              }
            },
            "deadlock: these wait for each other: rank 0, step 0: send input 2 to rank 1; which waits for rank 1"},
           {[](ordered_json& json) { step(json, 1, 2)["sources"].erase(1); },
            "result: rank 0: at the end output 2 has what rank 1 gave 0 times instead of once"}}) {
    const auto said = check({"--from", shown({"ring", "-n", "3"}, change), "--svg", path("plan.svg")});
    EXPECT_EQ(said.code, 1);
    EXPECT_THAT(said.errors, HasSubstr("tutti plan check: ring all_reduce, 3 ranks: " + sentence));
    EXPECT_EQ(std::count(said.errors.begin(), said.errors.end(), '\n'), 1);
    EXPECT_EQ(said.out, "drawn in " + path("plan.svg") + "\n");
    std::stringstream picture;
    picture << std::ifstream(path("plan.svg")).rdbuf();
    EXPECT_THAT(picture.str(), HasSubstr(sentence.substr(sentence.find("rank"), 20)));
    EXPECT_THAT(picture.str(), HasSubstr("</svg>"));
  }
}

TEST_F(CheckFrom, OfSeveralPlansSaysWhich) {
  const auto twice = [](ordered_json& json) { step(json, 1, 0)["peer"] = 0; };
  auto plans = ordered_json::array();
  for (const bool flawed : {false, true, false}) {
    std::stringstream text;
    text << std::ifstream(shown({"ring", "-n", "3"}, flawed ? std::function<void(ordered_json&)>(twice) : nullptr))
                .rdbuf();
    plans.push_back(ordered_json::parse(text.str())[0]);
  }
  const auto said = check({"--from", written(plans.dump())});
  EXPECT_EQ(said.code, 1);
  EXPECT_THAT(said.errors, HasSubstr("tutti plan check: plan 2: ring all_reduce, 3 ranks: unmatched"));
}

TEST_F(CheckFrom, AnEmptySpanReadsAsOne) {
  const auto said =
      check({"--from", shown({"ring", "-n", "3"}, [](auto& json) { step(json, 1, 0)["span"]["count"] = 0; })});
  EXPECT_THAT(said.errors, HasSubstr("rank 1, step 0: send nothing at input 0 to rank"));
}

TEST_F(CheckFrom, TheVerdictIsJson) {
  const auto good = check({"--from", shown({"tree", "-n", "3"}), "--json", "--svg", path("plan.svg")});
  EXPECT_EQ(good.code, 0);
  EXPECT_EQ(good.errors, "drawn in " + path("plan.svg") + "\n");
  EXPECT_EQ(ordered_json::parse(good.out),
            ordered_json::parse(R"([{"op": "all_reduce", "algorithm": "tree", "ranks": 3, "proved": true}])"));
  const auto bad =
      check({"--from", shown({"ring", "-n", "3"}, [](auto& json) { step(json, 1, 0)["peer"] = 0; }), "--json"});
  EXPECT_EQ(bad.code, 1);
  const auto row = ordered_json::parse(bad.out)[0];
  EXPECT_EQ(row.at("proved"), false);
  EXPECT_EQ(row.at("kind"), "unmatched");
  EXPECT_EQ(row.at("rank"), 1);
  EXPECT_EQ(row.at("step"), 0);
  EXPECT_EQ(row.at("span"), ordered_json::parse(R"({"buffer": "input", "begin": 0, "count": 1})"));
  EXPECT_EQ(row.at("sentence"), "rank 1, step 0: send input 0 to rank 0: nobody receives it");
}

TEST_F(CheckFrom, WhatIsNoPlanIsALine) {
  for (const auto& [text, sentence] : std::vector<std::pair<std::string, std::string>>{
           {"[{\"op\": ", "plan.json: not JSON, from line 1 on"},
           {R"({"op": "all_reduce", "pieces": 1, "ranks": 1152921504606846976})", "ranks: expected a list"},
           {R"({"op": "all_reduce", "pieces": 1152921504606846976, "ranks": [{"steps": []}]})",
            "pieces: expected a whole number from 0 to"},
           {R"({"op": "all_reduce", "pieces": 1, "ranks": [{"steps": [{"kind": "send", "peer": 0, "span": 4}]}]})",
            "ranks[0].steps[0].span: expected an object with buffer, begin, count"}}) {
    const auto said = check({"--from", written(text)});
    EXPECT_EQ(said.code, 2);
    EXPECT_THAT(said.errors, HasSubstr(sentence));
    EXPECT_EQ(std::count(said.errors.begin(), said.errors.end(), '\n'), 1);
    EXPECT_EQ(said.out, "");
  }
  EXPECT_THAT(check({"--from", "/nowhere.json"}).errors, HasSubstr("cannot read /nowhere.json"));
  EXPECT_THAT(check({"--from", std::filesystem::temp_directory_path().string()}).errors, HasSubstr("it is a folder"));
  EXPECT_THAT(check({"--from", "/dev/zero"}).errors, HasSubstr("/dev/zero: it is no file"));
  EXPECT_THAT(check({"ring", "--from", "plan.json"}).errors,
              HasSubstr("--from: the file says which plans, not algorithm"));
}

TEST_F(CheckFrom, APictureThatCannotBeWrittenIsAnError) {
  const auto said = check({"--from", shown({"ring", "-n", "3"}), "--svg", "/nowhere/at/all.svg"});
  EXPECT_EQ(said.code, 2);
  EXPECT_THAT(said.errors, HasSubstr("cannot write /nowhere/at/all.svg"));
  const auto all = check({"all", "-n", "2..3", "--svg", path("plan.svg")});
  EXPECT_EQ(all.code, 0);
  EXPECT_THAT(all.out, HasSubstr("nothing drawn: of several plans, none has a flaw"));
  EXPECT_FALSE(std::filesystem::exists(path("plan.svg")));
}

}  // namespace
}  // namespace tutti::cli
