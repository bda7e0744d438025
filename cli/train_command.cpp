#include "cli/train_command.h"

#include <unistd.h>

#include <cstdlib>
#include <string_view>

#include <fmt/format.h>

#include "cli/beside.h"
#include "cli/parse.h"
#include "cli/run_command.h"
#include "cli/train_ending.h"
#include "cli/train_setup.h"
#include "train/corpus.h"
#include "train/live_line.h"
#include "train/saving.h"
#include "tutti/base/environment.h"

namespace tutti::cli {
namespace {

constexpr const char* kName = "tutti train";
/// A step may take long, and what there is has to be written: ranks that are asked to end have so many seconds.
constexpr double kGrace = 120;

bool draws_on_terminal() {
  const char* kind = std::getenv("TERM");
  return ::isatty(STDOUT_FILENO) == 1 && kind != nullptr && std::string_view(kind) != "dumb";
}

/// "nano", or what it has become.
std::string model_text(const train::Config& config) {
  const auto size = train::model_size(config);
  return size == train::find_preset(config.preset)->size
             ? config.preset
             : fmt::format("{} layer{} of width {}", size.layers, size.layers == 1 ? "" : "s", size.width);
}

void introduce(const TrainSetup& setup) {
  const auto& config = setup.config;
  for (const auto& note : setup.notes) {
    fmt::print("{}\n", note);
  }
  fmt::print("{}: {} parameters, {} rank{}, {} steps of {} tokens, into {}\n", model_text(config),
             train::count_text(static_cast<double>(train::model_size(config).parameters())), setup.ranks,
             setup.ranks == 1 ? "" : "s", config.steps, *config.batch_tokens, *config.out);
  std::fflush(stdout);
}

int start(const TrainSetup& setup, bool resume, const std::string& program) {
  const auto& config = setup.config;
  const bool live = !config.json && draws_on_terminal();
  RunArguments run;
  run.ranks = std::to_string(setup.ranks);
  run.no_prefix = true;
  run.grace = kGrace;
  auto options = check_run_arguments(run, {program, "train", *config.out,
                                           config.json ? "json"
                                           : live      ? "live"
                                                       : "plain",
                                           resume ? "resume" : "new"});
  if (!options) {
    return complain(kName, options.error().message);
  }
  options.value().supervisor.name = kName;
  options.value().supervisor.ranks_explain = true;
  options.value().supervisor.output.live = live;
  return run_command(options.value());
}

/// The same, and after an end that nobody asked for how to go on.
int start_and_see(const TrainSetup& setup, bool resume, const std::string& program) {
  const auto& config = setup.config;
  TrainEnding ending{.folder = *config.out,
                     .steps = config.steps,
                     .save_interval = config.save_interval,
                     .resumed = resume,
                     .before = find_saved_training(*config.out)};
  ending.code = start(setup, resume, program);
  if (ending.code != 0 && train::finish_saving(*config.out)) {  // somebody may have been killed while writing
    ending.after = find_saved_training(*config.out);
    if (const auto hint = how_to_go_on(ending); !hint.empty()) {
      complain(kName, hint);
    }
  }
  return ending.code;
}

}  // namespace

int train_command(const std::vector<std::string>& arguments) {
  const auto flags = train::parse_flags(arguments);
  if (!flags) {
    return complain(kName, flags.error().message);
  }
  if (!flags.value().help.empty()) {
    fmt::print("{}", flags.value().help);
    return 0;
  }
  if (is_rank()) {
    return complain(kName, "starts its ranks itself (-n), and was itself started as one of several: call it alone");
  }
  if (const auto environment = read_environment(); !environment) {
    return complain(kName, environment.error().message);
  }
  const auto program = find_beside("tutti-train");
  if (!program) {
    return complain(kName, program.error().message);
  }
  const auto setup = set_up_training(flags.value());
  if (!setup) {
    return complain(kName, setup.error().message);
  }
  if (!setup.value().config.json) {
    introduce(setup.value());
  }
  return start_and_see(setup.value(), flags.value().resume, program.value());
}

}  // namespace tutti::cli
