#pragma once

#include <string>
#include <vector>

#include "tutti/base/error.h"

namespace tutti::train {

/// The text files of a folder and those inside it, sorted by path, byte by byte. Left out are hidden files and folders,
/// links (they lead out, or to what comes anyway), empty files, and files that are not text: those with a zero among
/// their first 8,192 bytes. What cannot be read is an error that names it. Blocks.
Result<std::vector<std::string>> text_files(const std::string& folder);

/// All that a descriptor gives until its end. Blocks. `name` is for the error.
Result<std::string> read_to_end(int descriptor, const std::string& name);

/// All that is in a file. Blocks.
Result<std::string> read_file(const std::string& path);

}  // namespace tutti::train
