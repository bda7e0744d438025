#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "tutti/base/error.h"

namespace tutti {

/// Nothing of ours that is read whole comes near it.
inline constexpr std::size_t kLongestFile = std::size_t{32} << 20;

/// Where what is read whole may come from.
enum class Source { files, files_and_pipes };

/// All that is in the file. Refused is what is longer than kLongestFile, and what is no regular file: a device may have
/// no end, and a pipe may never begin (of those that may be read nevertheless, who named one waits for its writer). One
/// that is not there is Code::not_found. Blocks.
Result<std::string> read_whole(const std::string& path, Source from = Source::files);

/// Makes the folder that a file is to be in, where there is none.
Status make_folder_for(const std::string& path);

/// Puts that text into the file, in place of what was there; makes its folder where there is none. Who reads meanwhile
/// gets the old or the new whole, what is there and is no file stays, and what goes wrong (a full disk, a crash of the
/// machine) leaves the old. Blocks, also for the disk.
Status write_whole(const std::string& path, std::string_view text);

/// Whether `write_whole` has what it needs, for those who work long before they write: makes the folder, and tries it
/// with an empty file beside. What is in the file stays.
Status can_write_whole(const std::string& path);

}  // namespace tutti
