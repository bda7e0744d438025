#include "train/files.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>

#include <fmt/format.h>

#include "tutti/base/file_descriptor.h"

namespace tutti::train {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLookedAt = 8192;  // a zero, where a file has one, is found here

Error failed(const std::string& path, const std::string& why) {
  return {Code::system, fmt::format("{}: cannot read: {}", path, why)};
}

enum class Content { text, binary, empty };

Result<Content> content_of(const std::string& path) {
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW));
  std::array<char, kLookedAt> bytes{};
  const auto count = file.valid() ? ::read(file.get(), bytes.data(), bytes.size()) : -1;
  if (count < 0) {
    return failed(path, std::strerror(errno));
  }
  const std::string_view seen(bytes.data(), static_cast<std::size_t>(count));
  if (seen.empty()) {
    return Content::empty;
  }
  return seen.find('\0') == std::string_view::npos ? Content::text : Content::binary;
}

/// Which of a folder's entries are looked at: regular files, and folders, that are not hidden.
bool wanted(const fs::directory_entry& entry) {
  std::error_code gone;
  const auto status = entry.symlink_status(gone);
  return !entry.path().filename().string().starts_with('.') &&
         (fs::is_regular_file(status) || fs::is_directory(status));
}

}  // namespace

Result<std::vector<std::string>> text_files(const std::string& folder) {
  std::vector<std::string> files;
  std::vector<fs::path> waiting{folder};
  while (!waiting.empty()) {
    const auto here = waiting.back();
    waiting.pop_back();
    std::error_code error;
    fs::directory_iterator entry(here, error);
    for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
      if (!wanted(*entry)) {
        continue;
      }
      if (fs::is_directory(entry->symlink_status(error))) {
        waiting.push_back(entry->path());
        continue;
      }
      const auto content = content_of(entry->path().string());
      if (!content) {
        return content.error();
      }
      if (content.value() == Content::text) {
        files.push_back(entry->path().string());
      }
    }
    if (error) {
      return failed(here.string(), error.message());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

Result<std::string> read_to_end(int descriptor, const std::string& name) {
  constexpr std::size_t kAtOnce = std::size_t{1} << 20;
  std::string text;
  std::string some(kAtOnce, '\0');
  for (;;) {
    const auto count = ::read(descriptor, some.data(), some.size());
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count < 0) {
      return failed(name, std::strerror(errno));
    }
    if (count == 0) {
      return text;
    }
    text.append(some, 0, static_cast<std::size_t>(count));
  }
}

Result<std::string> read_file(const std::string& path) {
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) {
    return Error{errno == ENOENT ? Code::not_found : Code::system,
                 fmt::format("{}: cannot read: {}", path, std::strerror(errno))};
  }
  return read_to_end(file.get(), path);
}

}  // namespace tutti::train
