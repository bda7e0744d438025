#include "tutti/memory/arena.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdint>
#include <fstream>
#include <limits>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace tutti::memory {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW;

/// What the kernel says could still be had without swapping.
std::size_t available_memory() {
  std::ifstream meminfo("/proc/meminfo");
  std::string key;
  std::size_t kibibytes = 0;
  while (meminfo >> key >> kibibytes) {
    if (key == "MemAvailable:") {
      return kibibytes * 1024;
    }
    meminfo.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return SIZE_MAX;  // no such line: let the reservation itself find out
}

Status check_room(std::size_t bytes) {
  if (bytes == 0) {
    return Error{Code::invalid_argument, "an arena needs at least one byte"};
  }
  const auto available = available_memory();
  if (bytes > available) {
    return Error{
        Code::resource_exhausted,
        fmt::format("shared memory of {} MiB does not fit: {} MiB are available; use fewer ranks or free memory",
                    bytes >> 20, available >> 20)};
  }
  return {};
}

Result<std::byte*> map(std::size_t bytes, int fd) {
  // What threads share is this process's alone: a forked child gets a copy, and cannot touch its parent's.
  const int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
  void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);
  if (data == MAP_FAILED) {
    return system_error(fmt::format("cannot map {} bytes of shared memory", bytes), errno);
  }
  return static_cast<std::byte*>(data);
}

}  // namespace

Status reserve(int fd, std::size_t offset, std::size_t bytes) {
  if (auto room = check_room(bytes); !room) {
    return room;
  }
  int error = 0;
  do {
    error = ::posix_fallocate(fd, static_cast<off_t>(offset), static_cast<off_t>(bytes));
  } while (error == EINTR);
  if (error != 0) {
    auto failure = system_error(fmt::format("cannot reserve {} MiB of shared memory", bytes >> 20), error);
    failure.code = Code::resource_exhausted;
    return failure;
  }
  return {};
}

Result<Arena> Arena::create(std::size_t bytes, std::size_t more) {
  FileDescriptor fd(::memfd_create("tutti", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid()) {
    return system_error("cannot create shared memory (memfd)", errno);
  }
  // Beyond the limit the kernel would end the process with SIGXFSZ.
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < bytes + more) {
    return Error{Code::resource_exhausted,
                 fmt::format("shared memory of {} MiB is larger than files may be here ({} KiB): raise the limit with "
                             "ulimit -f unlimited",
                             (bytes + more) >> 20, limit.rlim_cur >> 10)};
  }
  if (::ftruncate(fd.get(), static_cast<off_t>(bytes + more)) != 0) {
    return system_error(fmt::format("cannot size shared memory to {} bytes", bytes + more), errno);
  }
  if (auto reserved = reserve(fd.get(), 0, bytes); !reserved) {
    return reserved.error();
  }
  // A peer that could shrink the file could kill us with SIGBUS.
  if (::fcntl(fd.get(), F_ADD_SEALS, kSeals) != 0) {
    return system_error("cannot seal shared memory", errno);
  }
  const auto data = map(bytes, fd.get());
  if (!data) {
    return data.error();
  }
  return Arena(data.value(), bytes, bytes + more, std::move(fd));
}

Result<Arena> Arena::create_private(std::size_t bytes) {
  if (const auto room = check_room(bytes); !room) {
    return room.error();
  }
  const auto data = map(bytes, -1);
  if (!data) {
    return data.error();
  }
  return Arena(data.value(), bytes, bytes, FileDescriptor());
}

Result<Arena> Arena::attach(FileDescriptor fd, std::size_t bytes) {
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) {
    return system_error("cannot look at a peer's shared memory", errno);
  }
  const int seals = ::fcntl(fd.get(), F_GET_SEALS);
  if (seals < 0 || (seals & kSeals) != kSeals || status.st_size < static_cast<off_t>(bytes)) {
    return Error{Code::protocol,
                 fmt::format("a peer handed over a descriptor that is not shared memory of {} bytes", bytes)};
  }
  const auto data = map(bytes, fd.get());
  if (!data) {
    return data.error();
  }
  return Arena(data.value(), bytes, static_cast<std::size_t>(status.st_size), std::move(fd));
}

Arena::Arena(Arena&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      file_bytes_(std::exchange(other.file_bytes_, 0)),
      fd_(std::move(other.fd_)) {}

Arena& Arena::operator=(Arena&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(file_bytes_, other.file_bytes_);
  std::swap(fd_, other.fd_);
  return *this;
}

Arena::~Arena() {
  if (data_ != nullptr) {
    ::munmap(data_, size_);
  }
}

}  // namespace tutti::memory
