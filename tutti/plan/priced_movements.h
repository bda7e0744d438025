#pragma once

#include <functional>
#include <vector>

#include "tutti/plan/rounds.h"
#include "tutti/plan/team.h"

namespace tutti::plan {

// What movements of many teams at once cost. `Members` are a team's ranks in its order; teams share no rank in one
// movement, but what they send crosses the same links.

using Members = std::vector<Rank>;
using BranchOf = std::function<Branch(std::size_t size, std::size_t place)>;

/// The edges of trees, by how far from the root the lower end is.
class Forest {
 public:
  /// A member's message is `bytes` long, times the number of members in its part of a tree when `weighted`.
  void add(const Members& team, const BranchOf& branch_of, double bytes, bool weighted = false);

  /// Sums go up: everyone adds what its children sent to its own. Not `adding`: what comes is kept as it is.
  void reduce(Rounds& rounds, bool adding = true) const;
  void broadcast(Rounds& rounds) const;

 private:
  std::vector<std::vector<Rounds::Message>> levels_;  // up
  double bytes_ = 0;
};

void price_doubling(Rounds& rounds, const std::vector<Members>& teams, double bytes);
/// `unit`: bytes of the smallest part.
void price_halving_doubling(Rounds& rounds, const std::vector<Members>& teams, double unit, double bytes);

/// A ring of which every message is `slice` bytes long, divided into chunks; with a reduce_scatter first, an
/// all_gather, or both.
struct RingWay {
  double slice = 0;
  unsigned chunks = 1;
  bool reduces = true;
  bool gathers = true;
};
void price_ring(Rounds& rounds, const std::vector<Members>& teams, const RingWay& way);

/// Every member sends so many bytes to every other one; or to a share of them, and gets something from a share.
struct Shares {
  double sends = 1;
  double takes = 1;
};
void price_everyone(Rounds& rounds, const std::vector<Members>& teams, double bytes, Shares shares = {});

}  // namespace tutti::plan
