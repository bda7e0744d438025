// What Python sees: a backend for torch.distributed, and the job's store.

#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include <pybind11/chrono.h>
#include <pybind11/stl.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <torch/csrc/utils/pybind.h>

#include "tutti/base/environment.h"
#include "tutti/comm/backend.h"
#include "tutti/comm/c10d_store.h"
#include "tutti/comm/exception.h"
#include "tutti/comm/group_factory.h"
#include "tutti/comm/job.h"
#include "tutti/comm/symmetric.h"
#include "tutti/version.h"

namespace {

using BackendPtr = c10::intrusive_ptr<c10d::Backend>;
using StorePtr = c10::intrusive_ptr<c10d::Store>;
using Seconds = std::chrono::duration<float>;

std::chrono::milliseconds milliseconds(Seconds timeout) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(timeout);
}

/// Names of source files, kept for the life of the process: operations refer to them. There are as many as modules.
const char* kept_name(const std::string& file) {
  static std::mutex mutex;
  static std::set<std::string> names;
  const std::scoped_lock lock(mutex);
  return names.insert(file).first->c_str();
}

/// Where code lies that is not the user's: torch, this package, Python's own modules.
struct LibraryFolders {
  std::string torch = folder_of("torch");
  std::string tutti = folder_of("tutti");
  std::string python = folder_of("os");

  bool hold(std::string_view file) const {
    // PyTorch's deprecated functions are called through a wrapper of that module.
    if (file.starts_with(torch) || file.starts_with(tutti) || file.starts_with("<frozen ") ||
        file.ends_with("/typing_extensions.py")) {
      return true;
    }
    const bool installed = file.find("/site-packages/") != file.npos || file.find("/dist-packages/") != file.npos;
    return file.starts_with(python) && !installed;
  }

  static std::string folder_of(const char* module) {
    const auto file = pybind11::module_::import(module).attr("__file__").cast<std::string>();
    return file.substr(0, file.rfind('/') + 1);
  }
};

/// Found out when this module is imported: later, an import could wait for another thread.
const LibraryFolders& library_folders() {
  static const LibraryFolders folders;
  return folders;
}

/// Where the calling thread's Python program is: the innermost frame that is the user's. Nothing for a thread that
/// Python does not know.
tutti::engine::CallSite python_site() {
  if (!Py_IsInitialized() || PyGILState_GetThisThreadState() == nullptr) {
    return {};
  }
  const pybind11::gil_scoped_acquire gil;
  auto frame = pybind11::reinterpret_steal<pybind11::object>(
      pybind11::handle(reinterpret_cast<PyObject*>(PyThreadState_GetFrame(PyThreadState_Get()))));
  while (frame) {
    auto* current = reinterpret_cast<PyFrameObject*>(frame.ptr());
    const auto code =
        pybind11::reinterpret_steal<pybind11::object>(reinterpret_cast<PyObject*>(PyFrame_GetCode(current)));
    const char* file = PyUnicode_AsUTF8(reinterpret_cast<PyCodeObject*>(code.ptr())->co_filename);
    if (file == nullptr) {
      PyErr_Clear();  // not a text that can be shown
    } else if (!library_folders().hold(file)) {
      return {.file = kept_name(file), .line = static_cast<std::uint32_t>(PyFrame_GetLineNumber(current))};
    }
    frame = pybind11::reinterpret_steal<pybind11::object>(reinterpret_cast<PyObject*>(PyFrame_GetBack(current)));
  }
  return {};
}

/// For torch.distributed.Backend.register_backend: one group's backend. The store's prefix is the group's own.
BackendPtr create_backend(const StorePtr& store, int rank, int size, Seconds timeout) {
  const auto ours = tutti::from_c10d(store);
  // The store may outlive the group and be used for another of the same name. Every rank counts its own rounds.
  const auto round = store->add("tutti/round/" + std::to_string(rank), 1);
  tutti::GroupFactory factory({.store = ours,
                               .rank = tutti::Rank{rank},
                               .timeout = milliseconds(timeout),
                               .preferences = tutti::value_or_throw(tutti::read_preferences())});
  return factory.make_backend("group-" + std::to_string(round), tutti::Rank{rank}, size, python_site);
}

/// A tensor in the symmetric memory of a process group's tutti backend.
at::Tensor symmetric_empty(const BackendPtr& backend, const std::vector<int64_t>& sizes, at::ScalarType dtype) {
  return tutti::symmetric_empty(sizes, at::TensorOptions().dtype(dtype), *backend);
}

bool is_symmetric(const BackendPtr& backend, const at::Tensor& tensor) { return tutti::is_symmetric(tensor, *backend); }

struct Joined {
  StorePtr store;
  int rank;
  int world_size;
};

/// For init_method="tutti://": the store of the job that this process was started for.
Joined join(Seconds timeout) {
  auto job = tutti::join_job({.timeout = milliseconds(timeout)});
  return {c10::make_intrusive<tutti::C10dStore>(std::move(job.store), milliseconds(timeout)),
          tutti::to_int(job.environment.place.rank), job.environment.place.world_size};
}

}  // namespace

PYBIND11_MODULE(_tutti, module) {
  (void)library_folders();
  module.def("is_symmetric", &is_symmetric, pybind11::arg("backend"), pybind11::arg("tensor"),
             pybind11::call_guard<pybind11::gil_scoped_release>());
  module.def("symmetric_empty", &symmetric_empty, pybind11::arg("backend"), pybind11::arg("sizes"),
             pybind11::arg("dtype"), pybind11::call_guard<pybind11::gil_scoped_release>());
  module.attr("__version__") = tutti::kVersion;
  module.def("shut_down_all", &tutti::Backend::shut_down_all, pybind11::call_guard<pybind11::gil_scoped_release>());
  module.def("create_backend", &create_backend, pybind11::arg("store"), pybind11::arg("rank"), pybind11::arg("size"),
             pybind11::arg("timeout"), pybind11::call_guard<pybind11::gil_scoped_release>());
  module.def(
      "join",
      [](Seconds timeout) {
        Joined joined;
        {
          const pybind11::gil_scoped_release release;
          joined = join(timeout);
        }
        return pybind11::make_tuple(joined.store, joined.rank, joined.world_size);
      },
      pybind11::arg("timeout"));
}
