#pragma once

#include <cstddef>

#include "tutti/base/error.h"
#include "tutti/base/file_descriptor.h"

namespace tutti::memory {

/// Memory that every rank of a host maps. Zeroed when made, reserved before use: when there is not enough, making it
/// fails; touching it never does. It has no name anywhere and goes with its last process.
/// Any thread; the bytes stay mapped for the arena's lifetime, also after a peer died.
class Arena {
 public:
  /// New memory that other processes can map through its descriptor. Its file goes on for `more` bytes that are
  /// neither reserved nor mapped here.
  static Result<Arena> create(std::size_t bytes, std::size_t more = 0);

  /// New memory of this process alone, for ranks that are threads.
  static Result<Arena> create_private(std::size_t bytes);

  /// Maps what a peer created. Refuses a descriptor that is not an arena of at least that size, or could still change
  /// its size.
  static Result<Arena> attach(FileDescriptor fd, std::size_t bytes);

  Arena(Arena&& other) noexcept;
  Arena& operator=(Arena&& other) noexcept;
  ~Arena();

  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }
  /// To be handed to peers; -1 for private memory.
  int fd() const { return fd_.get(); }
  std::size_t file_bytes() const { return file_bytes_; }

 private:
  Arena(std::byte* data, std::size_t size, std::size_t file_bytes, FileDescriptor fd)
      : data_(data), size_(size), file_bytes_(file_bytes), fd_(std::move(fd)) {}

  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t file_bytes_ = 0;
  FileDescriptor fd_;
};

/// Makes sure that this part of a file in memory can be touched: fails where writing to it would end the process.
Status reserve(int fd, std::size_t offset, std::size_t bytes);

}  // namespace tutti::memory
