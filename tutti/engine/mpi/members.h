#pragma once

#include <string>
#include <vector>

#include "tutti/base/rank.h"

namespace tutti::engine::mpi {

/// One rank of a group that spans hosts.
struct Member {
  int host = 0;       ///< hosts are numbered in the order in which their first ranks come in the group
  Rank local{0};      ///< its number among the group's ranks of that host
  int address = 0;    ///< its rank in the communicator that the group was made from
  Rank in_world{-1};  ///< as the job's store knows it; -1 when that is not known
};

/// Who is where. Plain data, the same on every rank.
struct Members {
  std::vector<Member> all;                 ///< by rank in the group
  std::vector<std::vector<Rank>> by_host;  ///< ranks in the group

  const Member& operator[](Rank rank) const { return all[to_index(rank)]; }
  int ranks() const { return static_cast<int>(all.size()); }
  int hosts() const { return static_cast<int>(by_host.size()); }
  /// Of the host that has fewest.
  std::size_t fewest() const;
};

/// From what each rank says of itself: `hosts` tells hosts apart.
Members arrange(const std::vector<std::string>& hosts, const std::vector<int>& addresses,
                const std::vector<Rank>& in_world);

}  // namespace tutti::engine::mpi
