#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace tutti::cli {

/// What a folder holds for going on from.
struct SavedTraining {
  std::int64_t step = 0;                         ///< that it was saved after
  std::filesystem::file_time_type written = {};  ///< tells one save from the next
  bool operator==(const SavedTraining&) const = default;
};

/// Nothing where there is no training, or none that can be read.
std::optional<SavedTraining> find_saved_training(const std::string& folder);

/// A training as its launcher sees it when it is over.
struct TrainEnding {
  int code = 0;  ///< that it exits with
  std::string folder = {};
  std::int64_t steps = 0;  ///< that it was to make
  std::int64_t save_interval = 0;
  bool resumed = false;
  std::optional<SavedTraining> before = {};  ///< what the folder held when it began
  std::optional<SavedTraining> after = {};
};

/// How to go on after an end that nobody asked for, as a sentence. Empty where there is nothing to say: it finished,
/// ranks were asked to end and have told, or it failed by what a second try would meet, too. Pure.
std::string how_to_go_on(const TrainEnding& ending);

}  // namespace tutti::cli
