#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>

#include "tutti/base/error.h"
#include "tutti/base/rank.h"
#include "tutti/rendezvous/store.h"

namespace tutti::engine::mpi {

/// How the ranks of a group on several hosts tell each other that it is broken, and learn that one of them is gone:
/// through the job's store, since MPI may not say so, or may wait for the one who is. A thread of its own waits there.
class Watch {
 public:
  /// Who tells of an error: a rank of the group, or the store, which knows ranks by their numbers in the world.
  enum class Source { rank, store };
  using Broken = std::function<void(const Error&, Source)>;

  /// `broken` is called by the thread, once, with the first error that is told.
  Watch(std::shared_ptr<rendezvous::Store> store, const std::string& group, Rank rank, int ranks, Broken broken);
  ~Watch();

  /// Tells all others. Any thread; blocks for the time that the store takes, a second at most.
  void tell(const Error& error);

 private:
  std::string key(Rank rank) const;
  void wait(const std::stop_token& stop);

  const std::shared_ptr<rendezvous::Store> store_;
  const std::string prefix_;
  const Rank rank_;
  const int ranks_;
  const Broken broken_;
  std::jthread thread_;
};

/// What the store told says who is gone, and nothing of operations: the same for one that it ended. Others as they are.
Error in_operation(const Error& error, const std::string& operation);

/// An error as text for the store, and back.
std::string pack(const Error& error);
Error unpack_error(const std::string& text);

}  // namespace tutti::engine::mpi
