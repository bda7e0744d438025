#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "tutti/base/error.h"
#include "tutti/base/file_descriptor.h"

namespace tutti::rendezvous {

/// What makes a process part of a job. Never printed, never on a command line, wiped when it goes.
class Secret {
 public:
  static constexpr std::size_t kBytes = 32;

  /// A new one from the kernel's random source.
  static Result<Secret> make();

  /// From a descriptor that `descriptor()` made; reads from its start without moving anyone's position.
  static Result<Secret> from_descriptor(int fd);

  /// From a file of at least 32 bytes, readable by its owner alone; anything wider is an error that says `chmod 600`.
  /// Its bytes are hashed, so any random content of enough length serves.
  static Result<Secret> from_file(const std::string& path);

  explicit Secret(const std::array<std::uint8_t, kBytes>& bytes) : bytes_(bytes) {}
  Secret(const Secret&) = default;
  Secret& operator=(const Secret&) = default;
  ~Secret();

  /// A sealed in-memory file holding it, to be inherited by ranks. Not close-on-exec.
  Result<FileDescriptor> descriptor() const;

  const std::array<std::uint8_t, kBytes>& bytes() const { return bytes_; }

 private:
  std::array<std::uint8_t, kBytes> bytes_{};
};

}  // namespace tutti::rendezvous
