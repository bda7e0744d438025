#pragma once

#include <optional>
#include <string>
#include <vector>

#include "train/config.h"
#include "train/flags.h"
#include "tutti/base/error.h"
#include "tutti/base/file_descriptor.h"

namespace tutti::cli {

/// What `tutti train` starts ranks with: all that can be checked before they are there has been.
struct TrainSetup {
  train::Config config;  ///< settled; its `out` holds it as starting.json
  int ranks = 1;
  std::vector<std::string> notes = {};  ///< what was chosen for the user, a sentence each
  FileDescriptor lock = {};             ///< of the folder: nobody else trains into it meanwhile
};

/// Checks what was typed against this machine, the data and the folders, reads standard input where that is the data,
/// and writes the settled configuration. Each error is one sentence, and leaves what was there. Blocks.
Result<TrainSetup> set_up_training(const train::Flags& flags);

/// Text for those who name none: that of this repository. Fails, with a sentence, where it is not.
Result<std::vector<std::string>> own_text();

/// How many ranks: as many as cores, up to 16 and as the batch can be divided; where a mesh says it, as many as that.
int choose_ranks(const train::Config& config, int cores);

/// runs/name, or runs/name-2 and so on where that has a run in it already.
std::string new_folder(const std::string& name);

}  // namespace tutti::cli
