#pragma once

#include <string>
#include <vector>

#include "train/config.h"
#include "tutti/base/error.h"

namespace tutti::train {

/// What the command line comes to.
struct Flags {
  Config config = {};
  bool resume = false;     ///< go on from what the folder holds
  bool out_named = false;  ///< by a flag, or by a file that is not a run's own
  std::string file = {};   ///< that was read
  std::string help = {};   ///< asked for, and to be printed instead of anything else
};

/// Every key of the configuration is a flag (learning_rate is --learning-rate), and --config names a file that holds
/// any of them. Flags override the file, wherever they stand. What the file has only because it follows from its preset
/// or its name (it may be the effective one of an earlier run) gives way when a flag names another. Reads the file; an
/// error is a sentence, with the flag that was probably meant where there is no such one. With --resume and no
/// --config, it is the file of the folder to go on from.
Result<Flags> parse_flags(const std::vector<std::string>& arguments);

}  // namespace tutti::train
