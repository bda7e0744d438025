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
  /// New memory that other processes can map through its descriptor.
  static Result<Arena> create(std::size_t bytes);

  /// New memory of this process alone, for ranks that are threads.
  static Result<Arena> create_private(std::size_t bytes);

  /// Maps what a peer created. Refuses a descriptor that is not an arena of exactly that size, or could still shrink.
  static Result<Arena> attach(FileDescriptor fd, std::size_t bytes);

  Arena(Arena&& other) noexcept;
  Arena& operator=(Arena&& other) noexcept;
  ~Arena();

  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }
  /// To be handed to peers; -1 for private memory.
  int fd() const { return fd_.get(); }

 private:
  Arena(std::byte* data, std::size_t size, FileDescriptor fd) : data_(data), size_(size), fd_(std::move(fd)) {}

  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  FileDescriptor fd_;
};

}  // namespace tutti::memory
