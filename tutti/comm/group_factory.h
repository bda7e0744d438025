#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tutti/base/environment.h"
#include "tutti/comm/backend.h"
#include "tutti/comm/group.h"
#include "tutti/comm/tuned.h"
#include "tutti/engine/local/local.h"
#include "tutti/rendezvous/store.h"

namespace tutti {

/// What the groups of one world are made from. One per world, shared by its groups; any thread.
class GroupFactory {
 public:
  struct Options {
    std::shared_ptr<rendezvous::Store> store;
    std::shared_ptr<engine::LocalMemories> memories = nullptr;  ///< set when ranks are threads of this process
    Rank rank{0};                                               ///< in the world
    std::chrono::milliseconds timeout = std::chrono::minutes(5);
    Preferences preferences = {};
    std::optional<std::uint64_t> communicator = std::nullopt;  ///< of the program's own, for MPI to work in
    std::shared_ptr<TuningCache> tuning = nullptr;             ///< null: that of the preferences
  };

  explicit GroupFactory(Options options);

  /// Makes the group of these world ranks, this rank among them. Blocks until all members are there, or throws.
  /// Members that make several groups of the same ranks make them in the same order.
  std::shared_ptr<Group::State> make(const std::vector<Rank>& members);

  /// Only what moves the bytes of such a group, for who builds the rest. `name` is used once per store.
  std::unique_ptr<engine::Engine> make_engine(const std::string& name, Rank me, int size);

  /// The same, as what c10d calls.
  c10::intrusive_ptr<Backend> make_backend(const std::string& name, Rank me, int size,
                                           engine::CallSite (*where)() = nullptr);

  const Options& options() const { return options_; }

 private:
  std::unique_ptr<engine::Engine> make_far_engine(const std::string& name, Rank me,
                                                  const std::vector<std::string>& hosts, Deadline deadline);
  std::string next_name(const std::vector<Rank>& members);

  Options options_;
  std::mutex mutex_;
  std::map<std::vector<Rank>, int> made_;  // how often each list of members was made into a group
};

/// A group's insides.
struct Group::State {
  c10::intrusive_ptr<c10d::ProcessGroup> process_group;
  Backend* ours = nullptr;  // kept by the process group; null when another's backend carries it
  std::vector<Rank> members;
  std::string name;
  std::shared_ptr<GroupFactory> factory;  // what sub-groups are made from
  std::atomic<int> splits = 0;
};

}  // namespace tutti
