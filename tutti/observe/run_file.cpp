#include "tutti/observe/run_file.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tutti/observe/run_record.h"

namespace tutti::observe {

namespace {

constexpr int kDeepest = 64;

}  // namespace

Result<std::string> find_run(const std::string& folder_or_file) {
  namespace fs = std::filesystem;
  std::error_code error;
  const auto status = fs::status(folder_or_file, error);
  if (!fs::exists(status)) {
    // Neither there nor not: a folder above is closed, or a link leads to itself.
    const auto why = status.type() == fs::file_type::not_found ? "no such folder or file" : error.message();
    return Error{Code::not_found, fmt::format("{}: {}", folder_or_file, why)};
  }
  if (!fs::is_directory(status)) {
    return folder_or_file;
  }
  const auto file = fs::path(folder_or_file) / "run.json";
  if (!fs::exists(file, error)) {
    return Error{Code::not_found, fmt::format("{}: no run's folder: it has no run.json", folder_or_file)};
  }
  return file.string();
}

Result<nlohmann::json> read_run(const std::string& file) {
  errno = 0;
  std::ifstream stream(file, std::ios::binary);
  std::string text;
  for (std::array<char, std::size_t{1} << 16> some{}; stream.good();) {
    stream.read(some.data(), some.size());
    text.append(some.data(), static_cast<std::size_t>(stream.gcount()));
  }
  if (!stream.is_open() || stream.bad()) {
    return Error{Code::system, fmt::format("{}: cannot read: {}", file, std::strerror(errno))};
  }
  bool too_deep = false;  // and the stack would be too small for it
  auto run = nlohmann::json::parse(
      text,
      [&](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
        too_deep = too_deep || depth > kDeepest;
        return !too_deep;
      },
      false);
  if (too_deep) {
    return Error{Code::invalid_argument,
                 fmt::format("{}: no record of a run: more than {} levels deep", file, kDeepest)};
  }
  if (!run.is_object()) {
    return Error{Code::invalid_argument,
                 fmt::format("{}: no record of a run: {}", file, run.is_discarded() ? "not JSON" : "not an object")};
  }
  if (const auto format = run.find("format"); format == run.end() || *format != kFormat) {
    return Error{Code::invalid_argument,
                 fmt::format("{}: recorded in format {}; this program reads {}", file,
                             format == run.end() ? "unknown" : format->dump(-1, ' ', true), kFormat)};
  }
  return run;
}

}  // namespace tutti::observe
