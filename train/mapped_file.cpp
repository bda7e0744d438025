#include "train/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "tutti/base/file_descriptor.h"

namespace tutti::train {
namespace {

Error failed(const std::string& path, const char* what) {
  const auto code = errno == ENOENT ? Code::not_found : Code::system;
  return {code, fmt::format("{}: cannot {}: {}", path, what, std::strerror(errno))};
}

enum class Copied { all, gone, forbidden };

/// As memcpy, but what is not there any more is an answer and no signal.
Copied copy_by_kernel(const std::byte* from, std::span<std::byte> to) {
  while (!to.empty()) {
    const iovec local{to.data(), to.size()};
    const iovec remote{const_cast<std::byte*>(from), to.size()};
    const auto count = ::process_vm_readv(::getpid(), &local, 1, &remote, 1, 0);
    if (count < 0 && errno != EFAULT) {
      return Copied::forbidden;
    }
    if (count <= 0) {
      return Copied::gone;
    }
    from += count;
    to = to.subspan(static_cast<std::size_t>(count));
  }
  return Copied::all;
}

}  // namespace

Result<MappedFile> MappedFile::open(const std::string& path) {
  // Not blocking: a pipe that somebody has put in the file's place would be waited for.
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat about {};
  if (!file.valid() || ::fstat(file.get(), &about) != 0) {
    return failed(path, "read");
  }
  if (!S_ISREG(about.st_mode)) {
    return Error{Code::invalid_argument, fmt::format("{}: is no file", path)};
  }
  MappedFile mapped;
  mapped.path_ = path;
  mapped.identity_ = {about.st_dev, about.st_ino, about.st_mtim.tv_sec, about.st_mtim.tv_nsec};
  if (about.st_size > 0) {
    const auto size = static_cast<std::size_t>(about.st_size);
    auto* const bytes = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file.get(), 0);
    if (bytes == MAP_FAILED) {
      return failed(path, "map");
    }
    mapped.bytes_ = static_cast<const std::byte*>(bytes);
    mapped.size_ = size;
  }
  return mapped;
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      bytes_(std::exchange(other.bytes_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      identity_(other.identity_) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  if (this != &other) {
    unmap();
    path_ = std::move(other.path_);
    bytes_ = std::exchange(other.bytes_, nullptr);
    size_ = std::exchange(other.size_, 0);
    identity_ = other.identity_;
  }
  return *this;
}

MappedFile::~MappedFile() { unmap(); }

void MappedFile::unmap() noexcept {
  if (bytes_ != nullptr) {
    ::munmap(const_cast<std::byte*>(bytes_), size_);
  }
}

Error MappedFile::shorter() const {
  return {Code::aborted, fmt::format("{}: has become shorter while it was in use; it had {} bytes", path_, size_)};
}

Status MappedFile::copy(std::size_t begin, std::span<std::byte> to) const {
  require(begin <= size_ && to.size() <= size_ - begin, "a copy lies within the file");
  if (to.empty()) {
    return {};
  }
  switch (copy_by_kernel(bytes_ + begin, to)) {
    case Copied::all: return {};
    case Copied::gone: return shorter();
    case Copied::forbidden: break;
  }
  if (auto same = unchanged(); !same) {
    return same;
  }
  std::copy_n(bytes_ + begin, to.size(), to.data());
  return {};
}

Status MappedFile::unchanged() const {
  struct stat about {};
  const bool there = ::stat(path_.c_str(), &about) == 0;
  if (!there || about.st_dev != identity_.device || about.st_ino != identity_.number) {
    return {};  // another file has its name now, or none: what is mapped is still the old one
  }
  if (std::cmp_less(about.st_size, size_)) {
    return shorter();
  }
  if (about.st_mtim.tv_sec != identity_.seconds || about.st_mtim.tv_nsec != identity_.nanoseconds) {
    return Error{Code::aborted, fmt::format("{}: has been written to while it was in use", path_)};
  }
  return {};
}

}  // namespace tutti::train
