#include "tutti/observe/run_file.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tutti/observe/run_record.h"

namespace tutti::observe {
namespace {

using testing::HasSubstr;

class RunFile : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string put(const std::string& text) const {
    std::ofstream(folder_ + "/run.json") << text;
    return folder_ + "/run.json";
  }

  const std::string folder_ = testing::TempDir() + "run-file-" + std::to_string(::getpid());
};

TEST_F(RunFile, IsFoundInItsFolderAndReadAsItWasWritten) {
  const auto run = RunRecord(3).to_json();
  const auto file = put(run.dump());
  EXPECT_EQ(find_run(folder_).value(), file);
  EXPECT_EQ(find_run(file).value(), file);
  EXPECT_EQ(read_run(file).value(), run);
}

TEST_F(RunFile, WhereNothingIsASentenceSaysSo) {
  EXPECT_THAT(find_run(folder_).error().message, HasSubstr("no run's folder: it has no run.json"));
  EXPECT_EQ(find_run("/nowhere/at/all").error().message, "/nowhere/at/all: no such folder or file");
  put("{}");
  EXPECT_EQ(find_run(folder_ + "/run.json/x").error().message, folder_ + "/run.json/x: no such folder or file");
}

TEST_F(RunFile, WhatIsNoRunIsRefused) {
  for (const auto& [text, sentence] : std::vector<std::pair<std::string, std::string>>{
           {"", "no record of a run: not JSON"},
           {R"({"format": 1, "steps": {"lo)", "no record of a run: not JSON"},
           {R"({"format": 1, "loss": NaN})", "no record of a run: not JSON"},
           {"[1]", "no record of a run: not an object"},
           {R"({"name": "x"})", "recorded in format unknown; this program reads 1"},
           {R"({"format": 2})", "recorded in format 2; this program reads 1"},
           {R"({"format": "1"})", "recorded in format \"1\"; this program reads 1"}}) {
    const auto run = read_run(put(text));
    ASSERT_FALSE(run.ok()) << sentence;
    EXPECT_THAT(run.error().message, HasSubstr("run.json: " + sentence));
  }
  auto deep = std::string(200'000, ']');
  std::fill_n(deep.begin(), deep.size() / 2, '[');
  deep.insert(0, R"({"x": )");
  deep.push_back('}');
  EXPECT_THAT(read_run(put(deep)).error().message, HasSubstr("no record of a run: more than 64 levels deep"));
  EXPECT_THAT(read_run(folder_).error().message, HasSubstr("cannot read"));
  EXPECT_THAT(read_run(folder_ + "/none").error().message, HasSubstr("cannot read: No such file"));
}

}  // namespace
}  // namespace tutti::observe
