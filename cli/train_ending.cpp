#include "cli/train_ending.h"

#include <csignal>

#include <fmt/format.h>

#include "train/position_file.h"

namespace tutti::cli {
namespace {

constexpr int kOfSignal = 128;  // codes from here on: a signal ended it

bool was_asked_for(int code) { return code == 0 || code == kOfSignal + SIGINT || code == kOfSignal + SIGTERM; }

std::string nothing_saved(const TrainEnding& ending) {
  const auto when = ending.save_interval > 0 ? fmt::format("every {} steps", ending.save_interval) : "at the end alone";
  return fmt::format("this run had not saved anything to go on from yet (it does {}: --save-interval){}", when,
                     ending.before ? fmt::format("; what {} holds is of an earlier one", ending.folder) : "");
}

}  // namespace

std::optional<SavedTraining> find_saved_training(const std::string& folder) {
  const auto position = train::read_position(folder);
  std::error_code error;
  const auto written = std::filesystem::last_write_time(folder + "/position.json", error);
  return position && !error ? std::optional(SavedTraining{position.value().step, written}) : std::nullopt;
}

std::string how_to_go_on(const TrainEnding& ending) {
  const bool killed = ending.code > kOfSignal;
  const bool saved = ending.after && ending.after != ending.before;
  if (was_asked_for(ending.code) || (!killed && !saved)) {
    return "";
  }
  if (!saved && !(ending.resumed && ending.after)) {
    return nothing_saved(ending);
  }
  return ending.after->step < ending.steps
             ? fmt::format("to go on after step {} of {}: tutti train --config {}/train.json --resume",
                           ending.after->step, ending.steps, ending.folder)
             : "";
}

}  // namespace tutti::cli
