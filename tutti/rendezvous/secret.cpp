#include "tutti/rendezvous/secret.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>

#include <cerrno>
#include <vector>

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>

namespace tutti::rendezvous {
namespace {

constexpr std::size_t kMaxFile = 64 << 10;

Error refused(std::string sentence) { return {.code = Code::refused, .message = std::move(sentence)}; }

/// Reads up to `size` bytes from the start of a file, whatever its position is. -1 with errno, or how many there were.
ssize_t read_from_start(int fd, std::uint8_t* into, std::size_t size) {
  std::size_t done = 0;
  while (done < size) {
    const ssize_t got = ::pread(fd, into + done, size - done, static_cast<off_t>(done));
    if (got == 0) {
      break;
    }
    if (got < 0 && errno != EINTR) {
      return -1;
    }
    done += got > 0 ? static_cast<std::size_t>(got) : 0;
  }
  return static_cast<ssize_t>(done);
}

Status check_owner(int fd, const std::string& path) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) {
    return system_error("cannot look at the secret's file " + path, errno);
  }
  if (!S_ISREG(info.st_mode)) {
    return refused(fmt::format("the secret's file {} is not a regular file", path));
  }
  if (info.st_uid != ::geteuid()) {
    return refused(fmt::format("the secret's file {} belongs to uid {}, not to this user", path, info.st_uid));
  }
  if ((info.st_mode & 077) != 0) {
    return refused(fmt::format("the secret's file {} is open to others (mode {:o}); run: chmod 600 {}", path,
                               info.st_mode & 0777, path));
  }
  return {};
}

}  // namespace

Secret::~Secret() { OPENSSL_cleanse(bytes_.data(), bytes_.size()); }

Result<Secret> Secret::make() {
  Secret secret({});
  const ssize_t got = ::getrandom(secret.bytes_.data(), kBytes, 0);
  if (got != static_cast<ssize_t>(kBytes)) {
    return system_error("cannot get random bytes for the job's secret", got < 0 ? errno : EIO);
  }
  return secret;
}

Result<Secret> Secret::from_descriptor(int fd) {
  Secret secret({});
  const ssize_t got = read_from_start(fd, secret.bytes_.data(), kBytes);
  if (got < 0) {
    return system_error(fmt::format("cannot read the job's secret from descriptor {}", fd), errno);
  }
  if (got != static_cast<ssize_t>(kBytes)) {
    return refused(fmt::format("descriptor {} holds {} bytes, not the {} of a secret", fd, got, kBytes));
  }
  return secret;
}

Result<Secret> Secret::from_file(const std::string& path) {
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file.valid()) {
    auto error = system_error("cannot open the secret's file " + path, errno);
    error.code = errno == ENOENT ? Code::not_found : Code::system;
    return error;
  }
  if (auto status = check_owner(file.get(), path); !status) {
    return status.error();
  }
  std::vector<std::uint8_t> content(kMaxFile);
  const ssize_t got = read_from_start(file.get(), content.data(), content.size());
  if (got < 0) {
    return system_error("cannot read the secret's file " + path, errno);
  }
  if (got < static_cast<ssize_t>(kBytes)) {
    return refused(
        fmt::format("the secret's file {} has {} bytes; at least {} random ones are needed", path, got, kBytes));
  }
  Secret secret({});
  SHA256(content.data(), static_cast<std::size_t>(got), secret.bytes_.data());
  OPENSSL_cleanse(content.data(), content.size());
  return secret;
}

Result<FileDescriptor> Secret::descriptor() const {
  FileDescriptor file(::memfd_create("tutti-secret", MFD_ALLOW_SEALING));
  if (!file.valid()) {
    return system_error("cannot make a file in memory for the job's secret", errno);
  }
  if (::pwrite(file.get(), bytes_.data(), kBytes, 0) != static_cast<ssize_t>(kBytes) ||
      ::fcntl(file.get(), F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) != 0) {
    return system_error("cannot fill the file in memory for the job's secret", errno);
  }
  return file;
}

}  // namespace tutti::rendezvous
