#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "tutti/base/error.h"

namespace tutti::train {

/// A file's bytes as memory, read from the disk where they are used and shared by all processes of the host.
/// Any thread. Needs no open descriptor while it lasts.
///
/// A file that others make shorter while it is mapped ends whoever touches what is gone, with SIGBUS. So nobody touches
/// it: `copy` has the kernel read the mapping, for which that is an error like any other. Where it may not
/// (process_vm_readv is forbidden in some containers) the file's size is looked up before each copy; what is cut off
/// in the microseconds between is then not survived. A file that is replaced by another of its name, as editors do,
/// stays what it was. One that is written in place shows its new bytes: `unchanged` tells.
class MappedFile {
 public:
  /// A regular file, perhaps empty. Blocks. An error names the path.
  static Result<MappedFile> open(const std::string& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  const std::string& path() const { return path_; }
  std::size_t size() const { return size_; }

  /// The bytes from `begin` on; they must be within what `size` says. Fails when the file has become shorter.
  Status copy(std::size_t begin, std::span<std::byte> to) const;

  /// Whether the file has been written to, or cut, since it was opened. Looks at its time, not at its bytes.
  Status unchanged() const;

 private:
  struct Identity {
    unsigned long device = 0;
    unsigned long number = 0;
    long seconds = 0;
    long nanoseconds = 0;
  };

  MappedFile() = default;
  void unmap() noexcept;
  Error shorter() const;

  std::string path_;
  const std::byte* bytes_ = nullptr;
  std::size_t size_ = 0;
  Identity identity_;
};

}  // namespace tutti::train
