#include "tutti/base/whole_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>

#include "tutti/base/file_descriptor.h"

namespace tutti {
namespace {

Error failed(const std::string& path, const char* what) {
  return {Code::system, fmt::format("{}: cannot {}: {}", path, what, std::strerror(errno))};
}

bool write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const auto written = ::write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) {
      continue;
    }
    if (written < 0) {
      return false;
    }
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

/// A device or a folder is nothing to be replaced.
Status replaceable(const std::string& path) {
  struct stat there {};
  if (::stat(path.c_str(), &there) == 0 && !S_ISREG(there.st_mode)) {
    return Error{Code::invalid_argument, fmt::format("{}: cannot write: {}", path,
                                                     S_ISDIR(there.st_mode) ? "it is a folder" : "it is no file")};
  }
  return {};
}

std::string name_beside(const std::string& path) { return fmt::format("{}.{}", path, ::getpid()); }

/// Up to its end, or to one byte more than may be.
Result<std::string> read_some(int file, const std::string& path) {
  constexpr std::size_t kPortion = std::size_t{1} << 16;
  std::string text;
  while (text.size() <= kLongestFile) {
    const auto before = text.size();
    text.resize(before + kPortion);
    const auto count = ::read(file, text.data() + before, kPortion);
    if (count < 0 && errno != EINTR) {
      return system_error(fmt::format("cannot read {}", path), errno);
    }
    text.resize(before + static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    if (count == 0) {
      return text;
    }
  }
  return Error{Code::invalid_argument, fmt::format("{}: longer than {} MiB", path, kLongestFile >> 20)};
}

/// On the disk before it gets its name: else the name may outlive a crash of the machine, and the text not.
bool put_on_disk(const std::string& path, std::string_view text) {
  FileDescriptor file(::open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0666));
  // Some file systems say only at the close that there is no room.
  return file.valid() && write_all(file.get(), text) && ::fsync(file.get()) == 0 && ::close(file.release()) == 0;
}

}  // namespace

Result<std::string> read_whole(const std::string& path, Source from) {
  const bool pipes = from == Source::files_and_pipes;
  // Without waiting for somebody to write into a pipe that is refused.
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | (pipes ? 0 : O_NONBLOCK)));
  if (!file.valid()) {
    const int number = errno;
    auto why = system_error(fmt::format("cannot read {}", path), number);
    why.code = number == ENOENT ? Code::not_found : why.code;
    return why;
  }
  struct stat there {};
  if (::fstat(file.get(), &there) != 0 || !(S_ISREG(there.st_mode) || (pipes && S_ISFIFO(there.st_mode)))) {
    return Error{Code::invalid_argument,
                 fmt::format("cannot read {}: {}", path, S_ISDIR(there.st_mode) ? "it is a folder" : "it is no file")};
  }
  return read_some(file.get(), path);
}

Status make_folder_for(const std::string& path) {
  std::error_code error;
  if (const auto folder = std::filesystem::path(path).parent_path(); !folder.empty()) {
    std::filesystem::create_directories(folder, error);
    if (error) {
      return Error{Code::system, fmt::format("{}: cannot make the folder: {}", folder.string(), error.message())};
    }
  }
  return {};
}

Status write_whole(const std::string& path, std::string_view text) {
  if (auto made = make_folder_for(path); !made) {
    return made;
  }
  if (auto good = replaceable(path); !good) {
    return good;
  }
  const auto beside = name_beside(path);
  if (!put_on_disk(beside, text)) {
    auto why = failed(path, "write");
    ::unlink(beside.c_str());
    return why;
  }
  if (std::rename(beside.c_str(), path.c_str()) != 0) {
    auto why = failed(path, "put the new one in its place");
    ::unlink(beside.c_str());
    return why;
  }
  return {};
}

Status can_write_whole(const std::string& path) {
  if (auto made = make_folder_for(path); !made) {
    return made;
  }
  if (auto good = replaceable(path); !good) {
    return good;
  }
  const auto beside = name_beside(path);
  const FileDescriptor file(::open(beside.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666));
  if (file.valid()) {
    ::unlink(beside.c_str());
    return {};
  }
  // One of that name was left by somebody, and goes when what is written takes its place.
  return errno == EEXIST ? Status() : Status(failed(path, "write"));
}

}  // namespace tutti
