#pragma once
// The safetensors format: eight bytes that say how long the header is (little-endian), the header (JSON: each block's
// type, shape and place), and the blocks, one after the other without gaps.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "train/mapped_file.h"
#include "tutti/base/error.h"

namespace tutti::train {

/// Types by the names that the format gives them.
enum class Dtype { boolean, u8, i8, f8_e5m2, f8_e4m3, u16, i16, f16, bf16, u32, i32, f32, u64, i64, f64 };

std::string_view to_string(Dtype dtype);
std::optional<Dtype> find_dtype(std::string_view name);
std::size_t bytes_of(Dtype dtype);

/// What a file says of a block; `begin` is counted from the first block's.
struct BlockInfo {
  std::string name;
  Dtype dtype = Dtype::f32;
  std::vector<std::int64_t> shape;
  std::size_t begin = 0;
  std::size_t bytes = 0;
};

/// A block to be written. Its bytes are the caller's, in this machine's order, which is little-endian.
struct Block {
  std::string name;
  Dtype dtype = Dtype::f32;
  std::vector<std::int64_t> shape;
  std::span<const std::byte> bytes;
};

using Metadata = std::map<std::string, std::string>;  ///< "format": "pt" is what PyTorch's readers want to see

/// Makes the file, in place of what was there, and its folder. It is on the disk when this returns. Who reads meanwhile
/// gets the old or the new whole; what goes wrong, a full disk for example, leaves the old. Blocks begin where their
/// type may. Fails also on two blocks of a name and on bytes that do not fit the shape. Blocks the caller.
Status write_safetensors(const std::string& path, std::span<const Block> blocks, const Metadata& metadata = {});

/// A file of that format, mapped. Any thread. All that the header says has been checked: blocks lie in the file, leave
/// no gaps and do not overlap, and are as long as their shape says. They are copied out, never pointed to: so a file
/// may begin its blocks anywhere (the format allows it), and one that is cut meanwhile is an error and no signal.
class Safetensors {
 public:
  /// Blocks. Whatever is in the file, a sentence or a success is what comes of it.
  static Result<Safetensors> open(const std::string& path);

  /// In the order in which they lie in the file.
  const std::vector<BlockInfo>& blocks() const { return blocks_; }
  const Metadata& metadata() const { return metadata_; }
  /// Null when there is none of that name.
  const BlockInfo* find(std::string_view name) const;

  /// Copies a block of `blocks()` to memory of its length. Blocks while the disk reads.
  Status read(const BlockInfo& block, std::span<std::byte> to) const;

 private:
  Safetensors(MappedFile file, std::size_t data) : file_(std::move(file)), data_(data) {}

  MappedFile file_;
  std::size_t data_;  // where the first block begins
  std::vector<BlockInfo> blocks_;
  std::map<std::string, std::size_t, std::less<>> by_name_;
  Metadata metadata_;
};

}  // namespace tutti::train
