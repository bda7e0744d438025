// What Python sees: a backend for torch.distributed, and the job's store.

#include <pybind11/chrono.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <torch/csrc/utils/pybind.h>

#include "tutti/comm/backend.h"
#include "tutti/comm/c10d_store.h"
#include "tutti/comm/exception.h"
#include "tutti/comm/group_factory.h"
#include "tutti/comm/job.h"
#include "tutti/version.h"

namespace {

using StorePtr = c10::intrusive_ptr<c10d::Store>;
using Seconds = std::chrono::duration<float>;

std::chrono::milliseconds milliseconds(Seconds timeout) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(timeout);
}

/// For torch.distributed.Backend.register_backend: one group's backend. The store's prefix is the group's own.
c10::intrusive_ptr<c10d::Backend> create_backend(const StorePtr& store, int rank, int size, Seconds timeout) {
  const auto ours = tutti::from_c10d(store);
  // The store may outlive the group and be used for another of the same name. Every rank counts its own rounds.
  const auto round = store->add("tutti/round/" + std::to_string(rank), 1);
  tutti::GroupFactory factory({.store = ours, .rank = tutti::Rank{rank}, .timeout = milliseconds(timeout)});
  return c10::make_intrusive<tutti::Backend>(
      factory.make_engine("group-" + std::to_string(round), tutti::Rank{rank}, size), milliseconds(timeout));
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
