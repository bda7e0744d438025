#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "tutti/base/environment.h"
#include "tutti/comm/group.h"
#include "tutti/comm/job.h"
#include "tutti/comm/mesh.h"

namespace tutti {

/// All ranks of a job, seen from one of them. A handle: copies are the same world. The rank leaves when the last handle
/// on the world and on groups of it is gone. Any thread.
class World {
 public:
  Rank rank() const { return group().rank(); }
  int size() const { return group().size(); }
  int local_rank() const;  ///< number among the ranks of this host
  int local_size() const;  ///< ranks on this host

  /// The group of all ranks.
  const Group& group() const;

  /// Arranges all ranks: "dp=2,tp=2"; one size may be "*".
  Mesh mesh(std::string_view layout) const { return Mesh(group(), layout); }

  /// The job's store, for whatever else ranks have to tell each other.
  c10::intrusive_ptr<c10d::Store> store() const;

  /// Who started this rank.
  Launcher launcher() const;

  struct State;  // inside the room
  explicit World(std::shared_ptr<State> state) : state_(std::move(state)) {}

 private:
  std::shared_ptr<State> state_;
};

/// Joins the job that this process was started for: by `tutti run`, torchrun, mpirun (Open MPI, MPICH, Intel MPI),
/// srun, or by hand with RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT. Started alone, it is a world of one. Blocks
/// until all ranks are there; throws, saying who is missing, when they are not by the deadline.
World init(const InitOptions& options = {});

/// Runs `function` on `ranks` ranks that are threads of this process, and returns when all have returned. When one
/// throws, the others' pending operations end, and its exception is thrown here.
void run_ranks(int ranks, const std::function<void(World&)>& function);

/// The same for a function that wants only the group of all ranks.
template <class Function>
  requires(std::invocable<Function, Group&> && !std::invocable<Function, World&>)
void run_ranks(int ranks, Function function) {
  run_ranks(ranks, std::function<void(World&)>([&function](World& world) {
              Group group = world.group();
              function(group);
            }));
}

}  // namespace tutti
