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

#include "tutti/comm/backend.h"
#include "tutti/comm/c10d_store.h"
#include "tutti/comm/exception.h"
#include "tutti/comm/group_factory.h"
#include "tutti/comm/job.h"
#include "tutti/comm/symmetric.h"
#include "tutti/version.h"

namespace {

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

/// Where the calling thread's Python program is: the innermost frame outside of torch and of this package. Nothing for
/// a thread that Python does not know.
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
    const auto file = reinterpret_cast<PyCodeObject*>(code.ptr())->co_filename;
    const char* text = PyUnicode_AsUTF8(file);
    const std::string_view path = text == nullptr ? "/torch/" : text;
    if (path.find("/torch/") == std::string_view::npos && path.find("/tutti/__init__") == std::string_view::npos) {
      return {.file = kept_name(std::string(path)), .line = static_cast<std::uint32_t>(PyFrame_GetLineNumber(current))};
    }
    frame = pybind11::reinterpret_steal<pybind11::object>(reinterpret_cast<PyObject*>(PyFrame_GetBack(current)));
  }
  return {};
}

/// For torch.distributed.Backend.register_backend: one group's backend. The store's prefix is the group's own.
c10::intrusive_ptr<c10d::Backend> create_backend(const StorePtr& store, int rank, int size, Seconds timeout) {
  const auto ours = tutti::from_c10d(store);
  // The store may outlive the group and be used for another of the same name. Every rank counts its own rounds.
  const auto round = store->add("tutti/round/" + std::to_string(rank), 1);
  tutti::GroupFactory factory({.store = ours, .rank = tutti::Rank{rank}, .timeout = milliseconds(timeout)});
  return factory.make_backend("group-" + std::to_string(round), tutti::Rank{rank}, size, python_site);
}

/// A tensor in the symmetric memory of a process group's tutti backend.
at::Tensor symmetric_empty(const c10::intrusive_ptr<c10d::ProcessGroup>& group, const std::vector<int64_t>& sizes,
                           at::ScalarType dtype) {
  return tutti::symmetric_empty(sizes, at::TensorOptions().dtype(dtype), group);
}

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
  module.def("symmetric_empty", &symmetric_empty, pybind11::arg("group"), pybind11::arg("sizes"),
             pybind11::arg("dtype"), pybind11::call_guard<pybind11::gil_scoped_release>());
  module.attr("__version__") = tutti::kVersion;
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
