#pragma once

#include <string>
#include <vector>

#include "tutti/base/error.h"
#include "tutti/engine/mpi/mpi_api.h"

namespace tutti::engine::mpi {

/// A plugin on disk.
struct Plugin {
  std::string name;  ///< "openmpi", "mpich", "intelmpi"
  std::string path;
};

/// Those that were built or installed along with this program or library.
std::vector<Plugin> find_plugins();

/// The name of the MPI that is in this process already, since the program is linked to it; empty when none is.
std::string loaded_mpi();

/// Which of them fits: one of that name, or, where MPICH's binary interface is shared, one that will do. `wanted` may
/// be a path. Pure.
Result<Plugin> choose_plugin(const std::vector<Plugin>& plugins, const std::string& wanted, const std::string& loaded,
                             const std::string& launcher);

/// Loads it, and with it the MPI that it was built for, unless the process has one.
Result<Api*> load_plugin(const Plugin& plugin);

}  // namespace tutti::engine::mpi
