#include "train/saving.h"

#include <filesystem>

#include <fmt/format.h>

namespace tutti::train {
namespace {

namespace fs = std::filesystem;

}  // namespace

std::string saving_folder(const std::string& folder) { return folder + "/saving"; }

Status take_places(const std::string& folder) {
  const fs::path fresh = saving_folder(folder);
  std::error_code error;
  for (const auto* name : kSavedFiles) {
    if (!fs::exists(fresh / name, error)) {
      continue;  // it has its place already
    }
    fs::rename(fresh / name, fs::path(folder) / name, error);
    if (error) {
      return Error{Code::system,
                   fmt::format("{}/{}: cannot put the new one in its place: {}", folder, name, error.message())};
    }
  }
  fs::remove_all(fresh, error);
  fs::remove(fs::path(folder) / kStarting, error);
  return {};
}

Status finish_saving(const std::string& folder) {
  const fs::path fresh = saving_folder(folder);
  std::error_code error;
  if (fs::exists(fresh / kSavedFiles.back(), error)) {
    return take_places(folder);
  }
  fs::remove_all(fresh, error);
  return {};
}

}  // namespace tutti::train
