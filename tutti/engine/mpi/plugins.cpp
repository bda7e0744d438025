#include "tutti/engine/mpi/plugins.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tutti::engine::mpi {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "libtutti_mpi_";
constexpr std::string_view kSuffix = ".so";
constexpr std::string_view kFolder = "tutti-mpi";

/// Of the library or program that this function is in.
fs::path own_folder() {
  Dl_info info{};
  if (::dladdr(reinterpret_cast<void*>(&own_folder), &info) == 0 || info.dli_fname == nullptr) {
    return {};
  }
  std::error_code failed;
  // A program may name itself by what it was called with.
  auto path = fs::canonical(info.dli_fname, failed);
  if (failed) {
    path = fs::read_symlink("/proc/self/exe", failed);
  }
  return path.parent_path();
}

std::string joined(const std::vector<Plugin>& plugins) {
  std::vector<std::string> names;
  std::transform(plugins.begin(), plugins.end(), std::back_inserter(names),
                 [](const Plugin& each) { return each.name; });
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

/// MPICH and Intel MPI have one binary interface.
bool fits(const std::string& plugin, const std::string& mpi) {
  const auto like_mpich = [](const std::string& name) { return name == "mpich" || name == "intelmpi"; };
  return plugin == mpi || (like_mpich(plugin) && like_mpich(mpi));
}

}  // namespace

std::vector<Plugin> find_plugins() {
  std::vector<Plugin> plugins;
  const auto own = own_folder();
  for (const auto& folder :
       {own / kFolder, own / ".." / kFolder, own / ".." / "lib" / kFolder, own / ".." / ".." / kFolder}) {
    std::error_code failed;
    for (const auto& entry : fs::directory_iterator(folder, failed)) {
      const auto file = entry.path().filename().string();
      if (file.starts_with(kPrefix) && file.ends_with(kSuffix)) {
        plugins.push_back({.name = file.substr(kPrefix.size(), file.size() - kPrefix.size() - kSuffix.size()),
                           .path = entry.path().string()});
      }
    }
    if (!plugins.empty()) {
      break;
    }
  }
  std::sort(plugins.begin(), plugins.end(), [](const Plugin& a, const Plugin& b) { return a.name < b.name; });
  return plugins;
}

std::string loaded_mpi() {
  using Version = int (*)(char*, int*);
  const auto version = reinterpret_cast<Version>(::dlsym(RTLD_DEFAULT, "MPI_Get_library_version"));
  if (version == nullptr) {
    return {};
  }
  std::array<char, 16384> text{};  // more than any MPI_MAX_LIBRARY_VERSION_STRING
  int length = 0;
  version(text.data(), &length);
  const std::string_view said(text.data());
  return said.find("Open MPI") != std::string_view::npos       ? "openmpi"
         : said.find("Intel(R) MPI") != std::string_view::npos ? "intelmpi"
                                                               : "mpich";
}

Result<Plugin> choose_plugin(const std::vector<Plugin>& plugins, const std::string& wanted, const std::string& loaded,
                             const std::string& launcher) {
  if (wanted.find('/') != std::string::npos) {
    return Plugin{.name = fs::path(wanted).stem().string(), .path = wanted};
  }
  if (!wanted.empty() && wanted != "none" && !loaded.empty() && !fits(wanted, loaded)) {
    return Error{Code::invalid_argument,
                 fmt::format("TUTTI_MPI={}, but this program is linked to {}: there can be only one", wanted, loaded)};
  }
  if (wanted == "none") {
    return Error{Code::unsupported, "TUTTI_MPI is 'none'"};
  }
  const auto mpi = !wanted.empty() ? wanted : !loaded.empty() ? loaded : launcher;
  if (mpi.empty()) {
    return Error{Code::unsupported,
                 "this process was not started by an MPI launcher (mpirun, mpiexec), and its program has no MPI"};
  }
  for (const bool exactly : {true, false}) {
    for (const auto& plugin : plugins) {
      if (exactly ? plugin.name == mpi : fits(plugin.name, mpi)) {
        return plugin;
      }
    }
  }
  return Error{Code::unsupported,
               fmt::format("Tutti was built for no MPI like '{}' (for: {}); build it where that MPI's "
                           "mpicxx is on the PATH, or set TUTTI_MPI to the path of a plugin",
                           mpi, joined(plugins))};
}

Result<Api*> load_plugin(const Plugin& plugin) {
  void* const handle = ::dlopen(plugin.path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle == nullptr) {
    return Error{Code::unsupported, fmt::format("cannot load MPI: {}", ::dlerror())};
  }
  const auto version = reinterpret_cast<int (*)()>(::dlsym(handle, kVersionEntry));
  const auto entry = reinterpret_cast<Api* (*)()>(::dlsym(handle, kEntry));
  if (version == nullptr || entry == nullptr || version() != kApiVersion) {
    return Error{Code::unsupported, fmt::format("{} is not a plugin of this version of Tutti", plugin.path)};
  }
  return entry();
}

}  // namespace tutti::engine::mpi
