#include "cli/report_command.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/test_said.h"
#include "tutti/observe/page_template.h"
#include "tutti/observe/run_record.h"

namespace tutti::cli {
namespace {

using testing::HasSubstr;

Said report(const std::vector<std::string>& arguments) {
  return said_by([&] { return report_command(arguments); });
}

std::string read(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

class ReportCommand : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  /// The folder of a run of that name.
  std::string put_run(const std::string& name) const {
    observe::RunRecord record(2);
    record.set("name", name);
    record.timeline(5, {{.rank = 0, .phases = {{"forward", 3, 7}}, .buckets = {}}});
    return put(name, record.to_json().dump());
  }
  std::string put(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(folder_ + "/" + name);
    std::ofstream(folder_ + "/" + name + "/run.json") << text;
    return folder_ + "/" + name;
  }

  const std::string folder_ = testing::TempDir() + "report-" + std::to_string(::getpid());
};

/// What comes of a command that writes a page to that path, in a build with the page and in one without.
void expect_page(const Said& said, const std::string& path, const std::vector<std::string>& names) {
  if (observe::page_template().empty()) {
    EXPECT_EQ(said.code, 1);
    EXPECT_THAT(said.errors, HasSubstr("'tools/setup report' fetches it"));
    EXPECT_FALSE(std::filesystem::exists(path));
    return;
  }
  EXPECT_EQ(said.code, 0) << said.errors;
  EXPECT_THAT(said.out, testing::StartsWith(path + ": "));
  for (const auto& name : names) {
    EXPECT_THAT(read(path), HasSubstr("\"name\":\"" + name + "\""));
  }
}

TEST_F(ReportCommand, OneRunHasItsPageInItsFolder) {
  const auto run = put_run("nano");
  expect_page(report({run}), run + "/report.html", {"nano"});
  std::filesystem::remove(run + "/report.html");
  expect_page(report({run + "/run.json"}), run + "/report.html", {"nano"});
}

TEST_F(ReportCommand, SeveralHaveOneWhereItIsWanted) {
  const auto page = folder_ + "/new/both.html";
  expect_page(report({put_run("two"), put_run("four"), "--out", page}), page, {"two", "four"});
}

TEST_F(ReportCommand, SeveralHaveOneInTheCurrentFolder) {
  const auto runs = std::vector{put_run("two"), put_run("four")};
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder_);
  const auto said = report(runs);
  std::filesystem::current_path(before);
  EXPECT_EQ(said.code, observe::page_template().empty() ? 1 : 0);
  EXPECT_NE(std::filesystem::exists(folder_ + "/report.html"), observe::page_template().empty());
}

TEST_F(ReportCommand, ATraceIsOfOneRun) {
  const auto run = put_run("nano");
  const auto said = report({"--trace", folder_ + "/trace.json", run});
  EXPECT_EQ(said.code, 0);
  EXPECT_THAT(said.out, HasSubstr("ui.perfetto.dev"));
  EXPECT_EQ(nlohmann::json::parse(read(folder_ + "/trace.json")).at("traceEvents")[1].at("name"), "forward");
  EXPECT_FALSE(std::filesystem::exists(run + "/report.html"));

  const auto two = report({"--trace", folder_ + "/trace.json", run, run});
  EXPECT_EQ(two.code, 2);
  EXPECT_THAT(two.errors, HasSubstr("--trace: of one run"));
  const auto none = report({"--trace", folder_ + "/trace.json", put("short", R"({"format": 1})")});
  EXPECT_EQ(none.code, 1);
  EXPECT_THAT(none.errors, HasSubstr("has no timelines"));
}

TEST_F(ReportCommand, RefusesWithASentence) {
  const auto run = put_run("nano");
  std::filesystem::create_directories(folder_ + "/empty");
  for (const auto& [arguments, code, sentence] : std::vector<std::tuple<std::vector<std::string>, int, std::string>>{
           {{}, 2, "runs is required"},
           {{run, "--trace", "x", "--out", "y"}, 2, "--out excludes --trace"},
           {{folder_ + "/none"}, 1, "/none: no such folder or file"},
           {{run, folder_ + "/empty"}, 1, "/empty: no run's folder: it has no run.json"},
           {{put("broken", "{")}, 1, "/broken/run.json: no record of a run: not JSON"},
           {{put("later", R"({"format": 2})")}, 1, "recorded in format 2; this program reads 1"},
           {{"--trace", run + "/run.json/x", run}, 1, "cannot make the folder"}}) {
    const auto said = report(arguments);
    EXPECT_EQ(said.code, code) << sentence;
    EXPECT_THAT(said.errors, testing::StartsWith("tutti report: "));
    EXPECT_THAT(said.errors, HasSubstr(sentence));
    EXPECT_EQ(said.out, "");
  }
  EXPECT_FALSE(std::filesystem::exists(run + "/report.html"));
}

TEST_F(ReportCommand, WhatItIsMadeOfStays) {
  const auto run = put_run("nano");
  const auto other = put_run("other");
  const auto before = read(other + "/run.json");
  std::filesystem::create_symlink(other + "/run.json", folder_ + "/link");
  std::filesystem::create_hard_link(other + "/run.json", folder_ + "/second");
  for (const auto& target :
       {other + "/run.json", other + "/../other/run.json", folder_ + "/link", folder_ + "/second"}) {
    for (const auto& arguments : {std::vector<std::string>{"--trace", target, other}, {run, other, "--out", target}}) {
      const auto said = report(arguments);
      EXPECT_EQ(said.code, 2);
      EXPECT_THAT(said.errors, HasSubstr(target + ": is the record that this is to be made of"));
      EXPECT_EQ(read(other + "/run.json"), before);
    }
  }
  EXPECT_TRUE(std::filesystem::is_symlink(folder_ + "/link"));
}

TEST_F(ReportCommand, WhatCannotBeWrittenLeavesTheOldPage) {
  if (observe::page_template().empty()) {
    return;  // there is nothing to write
  }
  const auto run = put_run("nano");
  std::filesystem::create_directories(run + "/report.html/inside");
  const auto said = report({run});
  EXPECT_EQ(said.code, 1);
  EXPECT_THAT(said.errors, HasSubstr("report.html: cannot write: it is a folder"));
  EXPECT_TRUE(std::filesystem::exists(run + "/report.html/inside"));
}

}  // namespace
}  // namespace tutti::cli
