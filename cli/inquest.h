#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/verdict.h"
#include "tutti/base/deadline.h"
#include "tutti/base/rank.h"
#include "tutti/rendezvous/server.h"

namespace tutti::cli {

/// Collects how ranks end, and tells whom to blame. One thread.
class Inquest {
 public:
  /// The job begins now. The server must outlive it.
  Inquest(int world_size, const rendezvous::Server& server);

  void rank_started(Rank rank, pid_t pid, std::string_view host);
  RankEnd rank_ended(Rank rank, int status);
  /// It ended, and nobody can tell how.
  void rank_vanished(Rank rank) { ended_[to_index(rank)] = true; }

  /// Whether a rank that has not ended yet left the store before the first of those that failed: their failure may be
  /// a consequence of its own.
  bool culprit_may_come() const;

  /// After a failure: decides, for good.
  const RankEnd& judge();
  /// Nullopt before that.
  const std::optional<RankEnd>& blamed() const { return blamed_; }
  /// "rank 1 (pid 4711) exited with code 3 after 0.5 s; before it, rank 0 had left with code 0"
  std::string verdict() const;

 private:
  using Seconds = std::chrono::duration<double>;

  Seconds since_begin(Deadline::Clock::time_point time) const { return time - began_; }
  /// When a rank left the store, if it has.
  std::optional<Seconds> left(Rank rank) const;
  /// All ends, each with the time at which the rank was lost to the others.
  std::vector<RankEnd> dated_ends() const;

  const rendezvous::Server& server_;
  Deadline::Clock::time_point began_ = Deadline::Clock::now();
  std::vector<RankEnd> ranks_;  ///< by rank: who and where
  std::vector<bool> ended_;     ///< by rank
  std::vector<RankEnd> ends_;   ///< in the order in which they were seen
  std::optional<RankEnd> blamed_;
};

}  // namespace tutti::cli
