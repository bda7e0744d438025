#pragma once
// The header of the safetensors format as text, and what it means. Pure.

#include <string>
#include <string_view>
#include <vector>

#include "train/safetensors.h"
#include "tutti/base/error.h"

namespace tutti::train {

inline constexpr std::size_t kMostHeaderBytes = 100'000'000;  ///< as the format's own library has it

struct Header {
  std::vector<BlockInfo> blocks;  ///< by where they lie
  Metadata metadata;
};

/// What a header says of `data_bytes` that follow it. Errors are sentences without the file's name.
Result<Header> parse_header(std::string_view text, std::size_t data_bytes);

/// The same as text, with spaces at its end so that what follows its length and itself begins at a multiple of 8.
/// Fails on text that is not UTF-8.
Result<std::string> header_text(const Header& header);

/// Elements times the size of one; nothing when a length is negative or the product is too large for a number.
std::optional<std::size_t> bytes_of(Dtype dtype, const std::vector<std::int64_t>& shape);

}  // namespace tutti::train
