#pragma once
// What `tutti bench --links` has timed, as a file: so that ranks, which may be many and dear, need not wait until their
// network is found.

#include <string>
#include <vector>

#include "bench/link_cases.h"
#include "tutti/base/error.h"

namespace bench {

struct Recording {
  std::string machine;  ///< what kind it was (see machine_name)
  Ranks ranks;
  int cores_of_host = 1;
  std::vector<LinkCase> calibration = {};
  std::vector<LinkCase> comparison = {};  ///< none: nothing to compare with was timed
};

std::string to_json(const Recording& recording);

/// What `to_json` wrote, or the report that `--json` prints. The error says what is wrong with it.
tutti::Result<Recording> parse_recording(const std::string& text);
/// The same of a file, which the error names.
tutti::Result<Recording> read_recording(const std::string& path);

}  // namespace bench
