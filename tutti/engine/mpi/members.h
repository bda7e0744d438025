#pragma once

#include <string>
#include <vector>

#include "tutti/base/rank.h"

namespace tutti::engine::mpi {

/// One rank of a group that spans hosts.
struct Member {
  int host = 0;       ///< hosts are numbered by switch, then in the order in which their first ranks come in the group
  Rank local{0};      ///< its number among the group's ranks of that host
  int address = 0;    ///< its rank in the communicator that the group was made from
  Rank in_world{-1};  ///< as the job's store knows it; -1 when that is not known
};

/// Who is where. Plain data, the same on every rank.
struct Members {
  std::vector<Member> all;                 ///< by rank in the group
  std::vector<std::vector<Rank>> by_host;  ///< ranks in the group
  std::vector<int> at_switch;              ///< hosts at each switch, one after the other; empty: all at one

  const Member& operator[](Rank rank) const { return all[to_index(rank)]; }
  int ranks() const { return static_cast<int>(all.size()); }
  int hosts() const { return static_cast<int>(by_host.size()); }
  /// Of the host that has fewest.
  std::size_t fewest() const;
};

/// What a rank says of itself, and its host of where it hangs.
struct Resident {
  std::string host;  ///< tells hosts apart
  std::size_t at_switch = 0;
  int address = 0;
  Rank in_world{-1};
};

/// By rank.
Members arrange(const std::vector<Resident>& residents);

}  // namespace tutti::engine::mpi
