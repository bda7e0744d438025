#pragma once

#include <string>
#include <string_view>

#include "tutti/base/error.h"

namespace tutti {

/// Makes the folder that a file is to be in, where there is none.
Status make_folder_for(const std::string& path);

/// Puts that text into the file, in place of what was there; makes its folder where there is none. Who reads meanwhile
/// gets the old or the new whole, what is there and is no file stays, and what goes wrong (a full disk, a crash of the
/// machine) leaves the old. Blocks, also for the disk.
Status write_whole(const std::string& path, std::string_view text);

}  // namespace tutti
