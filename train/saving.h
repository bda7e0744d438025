#pragma once

#include <array>
#include <string>

#include "tutti/base/error.h"

namespace tutti::train {

/// What a training goes on from, in the order in which new files are written and take their places: when the position
/// is there, so are the others.
inline constexpr std::array kSavedFiles{"model.safetensors", "config.json", "optimizer.pt", "train.json",
                                        "position.json"};
/// What ranks are told to do. It becomes train.json with the first save: until then that belongs to what was there.
inline constexpr const char* kStarting = "starting.json";

/// Where new ones are written, inside of a run's folder.
std::string saving_folder(const std::string& folder);

/// New files, all written, take the places of the old.
Status take_places(const std::string& folder);

/// What a crash interrupted: new files that were all written take their places, others are dropped. Blocks.
Status finish_saving(const std::string& folder);

}  // namespace tutti::train
