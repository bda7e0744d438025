#include "cli/bench_command.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/beside.h"
#include "cli/parse.h"
#include "cli/run_command.h"
#include "tutti/base/environment.h"
#include "tutti/base/whole_file.h"
#include "tutti/plan/tuning.h"

namespace tutti::cli {
namespace {

constexpr const char* kBenchExamples =
    "Examples:\n"
    "  tutti bench all_reduce -n 2 --sizes 8,4Ki,1Mi,25Mi\n"
    "  tutti bench all_gather -n 4 --dtype bfloat16 --memory symmetric --json\n"
    "  tutti bench --tune -n 4                    what is quickest for each size; kept for programs to come\n"
    "  mpirun -n 4 tutti bench all --tune         the same for ranks that MPI started, on several hosts too\n"
    "  tutti bench --links -n 8                     # then: tutti plan cost --topology here\n"
    "  mpirun -n 64 tutti bench --links --record links.json && tutti bench --links --from links.json\n"
    "\n"
    "Sizes are those of the buffer (all_reduce, reduce, broadcast), of the whole output (all_gather, gather), or of "
    "the\n"
    "whole input (reduce_scatter, all_to_all, scatter). Bus bandwidth is counted as NCCL's tests do.";

constexpr const char* kSizes = "8,4Ki,64Ki,1Mi,25Mi";
constexpr const char* kTunedSizes = "8,64,512,4Ki,16Ki,64Ki,256Ki,1Mi,4Mi,25Mi";

/// What --links is told.
struct Links {
  bool wanted = false;
  bool compare = false;
  int rounds = 5;
  int cores = 0;
  std::string out;
  std::string record;
  std::string from;
};

constexpr int kMostRounds = 1000000;
constexpr int kMostCores = 1 << 20;

/// All that is declared so far measures operations, which --links does not, but for these.
void exclude_others(CLI::App& app, CLI::Option* wanted) {
  for (auto* const option : app.get_options()) {
    const auto name = option->get_name();
    if (option != wanted && option != app.get_help_ptr() && name != "--ranks" && name != "--bind" && name != "--json") {
      wanted->excludes(option);
    }
  }
}

/// Options that come after those that it has nothing to do with.
void declare_links(CLI::App& app, Links& links) {
  auto* const wanted =
      app.add_flag("--links", links.wanted,
                   "Time plans instead, and find the network that explains them (docs/pricing.md, Calibration)");
  exclude_others(app, wanted);
  auto* const compare = app.add_flag("--compare", links.compare,
                                     "With --links: also time other plans, sizes and numbers of ranks, to see how "
                                     "far the network explains those")
                            ->needs(wanted);
  auto* const out =
      app.add_option("--out", links.out, "With --links: write the network to this file, for tutti plan cost --topology")
          ->needs(wanted);
  auto* const record =
      app.add_option("--record", links.record,
                     "With --links: only write what was timed to this file, for --from, here or elsewhere")
          ->needs(wanted)
          ->excludes(out)
          ->excludes(app.get_option("--json"));
  auto* const from =
      app.add_option("--from", links.from, "With --links: time nothing, and find the network by what was recorded")
          ->needs(wanted)
          ->excludes(record)
          ->check(CLI::ExistingFile);
  auto* const rounds =
      app.add_option("--rounds", links.rounds, "With --links: time everything so often; the second best counts (5)")
          ->needs(wanted)
          ->check(CLI::Range(1, kMostRounds));
  auto* const cores = app.add_option("--cores", links.cores, "With --links: cores of a host (all of this one)")
                          ->needs(wanted)
                          ->check(CLI::Range(1, kMostCores));
  // No rank is started, and what they were is in the recording.
  for (auto* const option : {compare, rounds, cores, app.get_option("--ranks"), app.get_option("--bind")}) {
    from->excludes(option);
  }
}

/// The library's own check lets through what is no number, and names a limit of 309 digits.
std::string check_seconds(const std::string& text) {
  double seconds = 0;
  constexpr double kDay = 86400;
  const bool good = CLI::detail::lexical_cast(text, seconds) && seconds > 0 && seconds <= kDay;
  return good ? "" : fmt::format("seconds, more than 0 and up to a day, are wanted, not '{}'", text);
}

/// Whether what takes minutes to find can be kept: better known before.
Status check_files(bool tune, const Links& links) {
  if (tune) {
    const auto preferences = read_preferences();
    if (!preferences) {
      return preferences.error();
    }
    const auto& file = preferences.value().tuning;
    return file.empty() ? Status() : plan::can_add_to_tuning(file);
  }
  for (const auto& file : {links.out, links.record}) {
    if (!file.empty()) {
      if (auto good = can_write_whole(file); !good) {
        return good;
      }
    }
  }
  return {};
}

std::vector<std::string> links_command(const Links& links, const std::string& program, bool json) {
  std::vector<std::string> command{program, "--links", "--rounds", std::to_string(links.rounds)};
  if (links.compare) {
    command.emplace_back("--compare");
  }
  if (json) {
    command.emplace_back("--json");
  }
  if (links.cores > 0) {
    command.insert(command.end(), {"--cores", std::to_string(links.cores)});
  }
  for (const auto& [name, file] : {std::pair("--out", links.out), {"--record", links.record}, {"--from", links.from}}) {
    if (!file.empty()) {
      command.insert(command.end(), {name, file});
    }
  }
  return command;
}

}  // namespace

int bench_command(const std::vector<std::string>& arguments) {
  CLI::App app("Measure collectives: tutti bench OPERATION [OPTIONS]", "tutti bench");
  std::string op = "all_reduce";
  std::string sizes;
  std::string dtype = "float32";
  std::string memory = "both";
  std::string plot;
  RunArguments run;
  run.ranks = "2";
  run.bind = "none";
  run.no_prefix = true;
  double seconds = 1;
  bool json = false;
  bool touch = false;
  bool reproducible = false;
  bool tune = false;
  app.add_option(
      "operation", op,
      "all_reduce, reduce, broadcast, all_gather, reduce_scatter, all_to_all, gather, scatter, barrier; with "
      "--tune also all");
  app.add_option("-n,--ranks", run.ranks, "Number of ranks (2)");
  app.add_option(
      "--sizes", sizes,
      fmt::format("Bytes, with Ki, Mi or Gi, separated by commas ({}; with --tune {})", kSizes, kTunedSizes));
  app.add_option("--dtype", dtype, "float32, bfloat16, int64, ... (float32)");
  app.add_option("--memory", memory, "Where tensors lie: symmetric, private, or both")
      ->check(CLI::IsMember({"symmetric", "private", "both"}));
  app.add_option("--seconds", seconds, "Time for each size (1)")->check(check_seconds);
  app.add_option("--bind", run.bind, "Tie ranks to cores or NUMA nodes: core, numa, none (none)");
  app.add_flag("--touch", touch, "Write the tensors anew before each operation, as a training step does");
  app.add_flag("--tune", tune,
               "Time all ways to run the operation (or all of them: all), and choose; kept in TUTTI_TUNING");
  app.add_flag("--reproducible", reproducible, "Sums whose bits depend on the addends alone (docs/reproducible.md)");
  app.add_flag("--json", json, "Print an array of objects instead of a table");
  app.add_option("--plot", plot, "Write bus bandwidth over size as an SVG to this file");
  Links links;
  declare_links(app, links);
  app.footer(kBenchExamples);
  if (const int end = parse(app, "tutti bench", arguments); end >= 0) {
    return end;
  }
  auto program = find_beside("tutti-bench");
  if (!program) {
    return complain("tutti bench", program.error().message);
  }
  std::vector<std::string> command{program.value(),
                                   "--op",
                                   op,
                                   "--sizes",
                                   !sizes.empty() ? sizes
                                   : tune         ? kTunedSizes
                                                  : kSizes,
                                   "--dtype",
                                   dtype,
                                   "--memory",
                                   memory,
                                   "--seconds-per-size",
                                   fmt::format("{}", seconds),
                                   "--touch",
                                   touch ? "yes" : "no"};
  if (json) {
    command.emplace_back("--json");
  }
  if (tune) {
    command.emplace_back("--tune");
  }
  if (reproducible) {
    command.emplace_back("--reproducible");
  }
  if (!plot.empty()) {
    command.insert(command.end(), {"--plot", plot});
  }
  if (links.wanted) {
    command = links_command(links, program.value(), json);
  }
  // Of ranks only the first one writes, and maybe on another machine: it finds out itself.
  if (auto good = is_rank() ? Status() : check_files(tune, links); !good) {
    return complain("tutti bench", good.error().message);
  }
  if (is_rank() || !links.from.empty()) {
    return become("tutti bench", std::move(command));
  }
  const auto checked = check_run_arguments(run, std::move(command));
  return checked ? run_command(checked.value()) : complain("tutti bench", checked.error().message);
}

}  // namespace tutti::cli
