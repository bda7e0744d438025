#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "tutti/base/error.h"
#include "tutti/base/rank.h"
#include "tutti/engine/engine.h"
#include "tutti/engine/hub.h"
#include "tutti/memory/arena.h"

namespace tutti::engine {

/// The memory of groups whose ranks are threads of this process, by the groups' names. Shared by those ranks.
/// Any thread. A group's memory stays until all of its ranks have asked for it and the last engine has gone, so that
/// one that came and left early is known to have left.
class LocalMemories {
 public:
  /// The memory of a group, made by whoever asks first. Each rank asks once; names are not used again.
  Result<std::shared_ptr<memory::Arena>> get(const std::string& group, const HubLayout& layout);

  /// Breaks all groups, those that are there and those that come: a rank failed.
  void fail(const Error& error);

 private:
  struct Entry {
    HubLayout layout;
    std::weak_ptr<memory::Arena> arena;
    std::shared_ptr<memory::Arena> kept;  // until everybody came
    int to_come = 0;
  };

  std::mutex mutex_;
  std::map<std::string, Entry> entries_;
  std::optional<Error> failed_;
};

/// This rank's engine in a group of threads. Does not block: peers that have not come yet are waited for by the first
/// operation. A rank that destroys its engine has left.
Result<std::unique_ptr<Engine>> make_local_engine(LocalMemories& memories, const std::string& group, Rank rank,
                                                  int ranks);

}  // namespace tutti::engine
