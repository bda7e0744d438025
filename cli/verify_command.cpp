#include "cli/verify_command.h"

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/parse.h"
#include "cli/run_command.h"

namespace tutti::cli {
namespace {

constexpr const char* kVerifyExamples =
    "Examples:\n"
    "  tutti verify -n 4 -- ./train --check     four ranks against one process\n"
    "  tutti verify -n 2 --json -- ./train --check | tail -n 1 | jq '.[0].findings'\n"
    "\n"
    "The program calls tutti::verify, which trains a few steps on the same batch on all ranks and on one, and "
    "compares\n"
    "losses, gradients and weights (docs/verifying.md).\n"
    "Exit code: 0 when something was verified and all of it was right; that of the program when it failed; else 1.";

/// Where the program's reports go: a file of this process that is gone afterwards.
class ReportFile {
 public:
  ReportFile() : path_((std::filesystem::temp_directory_path() / "tutti-verify-XXXXXX").string()) {
    const int file = ::mkstemp(path_.data());
    made_ = file >= 0;
    if (made_) {
      ::close(file);
    }
  }
  ReportFile(const ReportFile&) = delete;
  ReportFile& operator=(const ReportFile&) = delete;
  ~ReportFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }

  bool made() const { return made_; }
  const std::string& path() const { return path_; }

  /// A line for each; one that was cut short is none.
  nlohmann::json reports() const {
    auto all = nlohmann::json::array();
    std::ifstream file(path_);
    for (std::string line; std::getline(file, line);) {
      if (auto report = nlohmann::json::parse(line, nullptr, false); report.is_object()) {
        all.push_back(std::move(report));
      }
    }
    return all;
  }

 private:
  std::string path_;
  bool made_ = false;
};

int judge(const nlohmann::json& reports, int code) {
  std::size_t wrong = 0;
  for (const auto& report : reports) {
    wrong += report.value("ok", false) ? 0 : 1;
  }
  if (wrong > 0) {
    fmt::print(stderr, "tutti verify: {} of {} verifications found something wrong\n", wrong, reports.size());
    return code != 0 ? code : 1;
  }
  if (code != 0) {
    return code;
  }
  if (reports.empty()) {
    fmt::print(stderr,
               "tutti verify: the program verified nothing: it has to call tutti::verify (docs/verifying.md)\n");
    return 1;
  }
  fmt::print(stderr, "tutti verify: {} verification{}, all right\n", reports.size(), reports.size() == 1 ? "" : "s");
  return 0;
}

}  // namespace

int verify_command(const std::vector<std::string>& arguments) {
  CLI::App app("Compare what ranks compute with what one process does: tutti verify [OPTIONS] -- PROGRAM [ARGUMENTS]",
               "tutti verify");
  RunArguments typed;
  bool json = false;
  declare_run_options(app, typed);
  app.add_flag("--json", json, "Print the reports as an array, on the last line");
  app.footer(kVerifyExamples);
  auto [options, program] = split_program(app, arguments);
  if (const int end = parse(app, "tutti verify", options); end >= 0) {
    return end;
  }
  const ReportFile file;
  if (!file.made()) {
    return complain("tutti verify", fmt::format("cannot make a file like {}", file.path()));
  }
  typed.variables.push_back("TUTTI_VERIFY_OUT=" + file.path());
  const auto checked = check_run_arguments(typed, std::move(program));
  if (!checked) {
    return complain("tutti verify", checked.error().message);
  }
  const int code = run_command(checked.value());
  const auto reports = file.reports();
  if (json) {
    fmt::print("{}\n", reports.dump());
    std::fflush(stdout);  // before what judge says on the other stream
  }
  return judge(reports, code);
}

}  // namespace tutti::cli
