#pragma once
// Which plans `tutti bench --links` times: some that a network's figures are found by, and others, of other sizes and
// numbers of ranks, to see how far these can be trusted. Pure.

#include <cstddef>
#include <vector>

#include "tutti/plan/calibrate.h"

namespace bench {

/// The ranks at hand, which fill hosts in order.
struct Ranks {
  int hosts = 1;
  int of_host = 2;
};

/// What is run.
struct LinkKind {
  tutti::plan::Op op = tutti::plan::Op::all_reduce;
  tutti::plan::Algorithm algorithm = tutti::plan::Algorithm::ring;
  unsigned chunks = 1;
  unsigned leaders = 1;  ///< of a hybrid
};

/// One that is run by some of the ranks: as many of each host, the first ones.
struct LinkCase {
  tutti::plan::TimedPlan plan = {};
  int hosts = 1;
  std::vector<double> rounds = {};  ///< seconds that each took, the median of many; the plan's are the second best

  /// Takes the second best of its rounds for the plan's time, of less than three the best. What else a machine does
  /// only adds to it, several times as much where ranks wait for each other, and a network is of links, not of that;
  /// but the best may have been lucky, as where a link had saved up.
  void settle();
  /// By how much the first and the second half of its rounds differ, relative to the smaller: no model
  /// can come nearer than that. 0 where there are less than two.
  double scatter() const;

  std::vector<tutti::Rank> members(const Ranks& ranks) const;
};

/// Of so many ranks of each host, and not timed yet.
LinkCase link_case(const LinkKind& kind, const Ranks& taking_part, std::size_t bytes);

/// What calibration begins with: a network of these ranks, with figures of the right order.
tutti::plan::Network guess_network(const Ranks& ranks, int cores_of_host);

/// Whether it can be simulated again and again, as finding a network does some thousand times.
bool is_short(const LinkCase& one);

/// All of them are short.
std::vector<LinkCase> calibration_cases(const Ranks& ranks);
std::vector<LinkCase> comparison_cases(const Ranks& ranks);

}  // namespace bench
