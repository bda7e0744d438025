#include "tutti/base/whole_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

namespace tutti {
namespace {

Error failed(const std::string& path, const char* what) {
  return {Code::system, fmt::format("{}: cannot {}: {}", path, what, std::strerror(errno))};
}

}  // namespace

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
  const auto beside = fmt::format("{}.{}", path, ::getpid());
  {
    std::ofstream file(beside, std::ios::trunc);
    file << text << std::flush;
    if (!file) {
      auto why = failed(beside, "write");
      ::unlink(beside.c_str());
      return why;
    }
  }
  if (std::rename(beside.c_str(), path.c_str()) != 0) {
    auto why = failed(path, "put the new one in its place");
    ::unlink(beside.c_str());
    return why;
  }
  return {};
}

}  // namespace tutti
