#include "train/safetensors.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <numeric>

#include <fmt/format.h>

#include "train/safetensors_header.h"
#include "tutti/base/file_descriptor.h"
#include "tutti/base/whole_file.h"

namespace tutti::train {
namespace {

static_assert(std::endian::native == std::endian::little, "the format's bytes are copied as they are");

constexpr std::size_t kLengthBytes = 8;

Error failed(const std::string& path, const char* what) {
  const bool full = errno == ENOSPC || errno == EDQUOT || errno == EFBIG;
  return {full ? Code::resource_exhausted : Code::system,
          fmt::format("{}: cannot {}: {}", path, what, std::strerror(errno))};
}

bool write_all(int file, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const auto count = ::write(file, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count <= 0) {
      return false;
    }
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
  return true;
}

/// After this a rename in the folder outlives a power failure.
bool sync_folder_of(const std::string& path) {
  const auto folder = std::filesystem::path(path).parent_path();
  const FileDescriptor opened(::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return opened.valid() && (::fsync(opened.get()) == 0 || errno == EINVAL);  // some file systems have none
}

/// Puts these one after the other into the file, which is on the disk then, or not there. Errors speak of `meant`.
Status write_new(const std::string& path, std::span<const std::span<const std::byte>> parts, const std::string& meant) {
  const FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666));
  if (!file.valid()) {
    return failed(meant, "write");
  }
  const bool written =
      std::all_of(parts.begin(), parts.end(), [&](const auto& part) { return write_all(file.get(), part); }) &&
      ::fsync(file.get()) == 0;
  if (!written) {
    auto why = failed(meant, "write");
    ::unlink(path.c_str());
    return why;
  }
  return {};
}

Error bad(const std::string& path, std::string_view sentence) {
  return {Code::invalid_argument, fmt::format("{}: {}", path, sentence)};
}

}  // namespace

Status write_safetensors(const std::string& path, std::span<const Block> blocks, const Metadata& metadata) {
  // Those of large elements first: then every one begins at a multiple of its element's size.
  std::vector<std::size_t> order(blocks.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return bytes_of(blocks[a].dtype) != bytes_of(blocks[b].dtype)
               ? bytes_of(blocks[a].dtype) > bytes_of(blocks[b].dtype)
               : blocks[a].name < blocks[b].name;
  });
  Header header{.blocks = {}, .metadata = metadata};
  std::vector<std::span<const std::byte>> parts(2);
  std::size_t at = 0;
  for (const auto index : order) {
    const auto& [name, dtype, shape, bytes] = blocks[index];
    if (bytes_of(dtype, shape) != bytes.size()) {
      return bad(path, fmt::format("block '{}' has {} bytes, which is not what its shape takes", name, bytes.size()));
    }
    header.blocks.push_back({name, dtype, shape, at, bytes.size()});
    parts.push_back(bytes);
    at += bytes.size();
  }
  const auto text = header_text(header);
  if (!text || text.value().size() > kMostHeaderBytes) {
    return bad(path, text ? "too many blocks for a header" : text.error().message);
  }
  const std::uint64_t length = text.value().size();
  parts[0] = std::as_bytes(std::span(&length, 1));
  parts[1] = std::as_bytes(std::span(text.value()));

  if (auto made = make_folder_for(path); !made) {
    return made;
  }
  const auto beside = fmt::format("{}.{}", path, ::getpid());
  if (auto written = write_new(beside, parts, path); !written) {
    return written;
  }
  if (std::rename(beside.c_str(), path.c_str()) != 0) {
    auto why = failed(path, "put the new one in its place");
    ::unlink(beside.c_str());
    return why;
  }
  return sync_folder_of(path) ? Status() : failed(path, "see its folder on the disk");
}

Result<Safetensors> Safetensors::open(const std::string& path) {
  auto file = MappedFile::open(path);
  if (!file) {
    return file.error();
  }
  const auto size = file.value().size();
  if (size < kLengthBytes) {
    return bad(path,
               fmt::format("is no safetensors file: it has {} bytes, and eight say how long the header is", size));
  }
  std::uint64_t length = 0;
  if (const auto copied = file.value().copy(0, std::as_writable_bytes(std::span(&length, 1))); !copied) {
    return copied.error();
  }
  if (length > kMostHeaderBytes || length > size - kLengthBytes) {
    return bad(path, fmt::format("is no safetensors file: its header would have {} bytes, of a file of {} and of {} at "
                                 "most",
                                 length, size, kMostHeaderBytes));
  }
  std::string text(length, '\0');
  if (const auto copied = file.value().copy(kLengthBytes, std::as_writable_bytes(std::span(text))); !copied) {
    return copied.error();
  }
  auto header = parse_header(text, size - kLengthBytes - length);
  if (!header) {
    return bad(path, header.error().message);
  }
  Safetensors opened(std::move(file).value(), kLengthBytes + length);
  opened.blocks_ = std::move(header.value().blocks);
  opened.metadata_ = std::move(header.value().metadata);
  for (std::size_t i = 0; i < opened.blocks_.size(); ++i) {
    opened.by_name_.emplace(opened.blocks_[i].name, i);
  }
  return opened;
}

const BlockInfo* Safetensors::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &blocks_[found->second];
}

Status Safetensors::read(const BlockInfo& block, std::span<std::byte> to) const {
  require(to.size() == block.bytes, "a block is read to memory of its length");
  return file_.copy(data_ + block.begin, to);
}

}  // namespace tutti::train
