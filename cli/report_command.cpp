#include "cli/report_command.h"

#include <filesystem>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/parse.h"
#include "tutti/base/whole_file.h"
#include "tutti/observe/page.h"
#include "tutti/observe/run_file.h"
#include "tutti/observe/trace.h"

namespace tutti::cli {
namespace {

constexpr int kFailed = 1;
constexpr const char* kPage = "report.html";

constexpr const char* kReportExamples =
    "Examples:\n"
    "  tutti report runs/nano                          the page of one run, into runs/nano/report.html\n"
    "  tutti report runs/dp2 runs/dp4 --out both.html  two runs on one page: their curves lie over each other\n"
    "  tutti report --trace trace.json runs/nano       its recorded steps, for ui.perfetto.dev or chrome://tracing\n"
    "\n"
    "A run is its folder, which holds run.json, or such a file (docs/report.md).\n"
    "Exit code: 0; 1 when a run cannot be read or the file cannot be written; 2 when the command cannot be understood.";

struct Typed {
  std::vector<std::string> runs;
  std::string out;
  std::string trace;
};

int fail(const Error& error) {
  complain("tutti report", error.message);
  return kFailed;
}

/// Beside the run when it is one: several have no folder in common.
std::string default_page(const std::vector<std::string>& files) {
  return files.size() == 1 ? (std::filesystem::path(files[0]).parent_path() / kPage).string() : kPage;
}

int write_page(const std::vector<nlohmann::json>& runs, const std::string& path) {
  const auto page = observe::report_page(runs);
  if (!page) {
    return fail(page.error());
  }
  if (const auto written = write_whole(path, page.value()); !written) {
    return fail(written.error());
  }
  fmt::print("{}: {} run{}; open it in a browser\n", path, runs.size(), runs.size() == 1 ? "" : "s");
  return 0;
}

int write_trace(const nlohmann::json& run, const std::string& path) {
  const auto trace = observe::trace_of(run);
  if (!trace) {
    return fail(trace.error());
  }
  if (const auto written = write_whole(path, trace.value().dump()); !written) {
    return fail(written.error());
  }
  fmt::print("{}: open it in ui.perfetto.dev or chrome://tracing\n", path);
  return 0;
}

}  // namespace

int report_command(const std::vector<std::string>& arguments) {
  CLI::App app("Show what recorded runs did: a page that opens offline", "tutti report");
  Typed typed;
  app.add_option("runs", typed.runs, "Folders of runs, or their run.json")->required();
  auto* out = app.add_option("--out", typed.out, "The page; else report.html, in the folder of the run when it is one");
  app.add_option("--trace", typed.trace, "Write no page, but the recorded steps of one run as a trace")->excludes(out);
  app.footer(kReportExamples);
  if (const int end = parse(app, "tutti report", arguments); end >= 0) {
    return end;
  }
  if (!typed.trace.empty() && typed.runs.size() > 1) {
    return complain("tutti report", "--trace: of one run");
  }
  std::vector<std::string> files;
  std::vector<nlohmann::json> runs;
  for (const auto& name : typed.runs) {
    const auto file = observe::find_run(name);
    if (!file) {
      return fail(file.error());
    }
    auto run = observe::read_run(file.value());
    if (!run) {
      return fail(run.error());
    }
    files.push_back(file.value());
    runs.push_back(std::move(run).value());
  }
  const auto target = !typed.trace.empty() ? typed.trace : typed.out.empty() ? default_page(files) : typed.out;
  for (const auto& file : files) {
    std::error_code error;
    if (std::filesystem::equivalent(file, target, error)) {
      return complain("tutti report", fmt::format("{}: is the record that this is to be made of", target));
    }
  }
  return typed.trace.empty() ? write_page(runs, target) : write_trace(runs[0], target);
}

}  // namespace tutti::cli
