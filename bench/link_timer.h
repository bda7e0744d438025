#pragma once
// Runs plans on the ranks at hand and times them.

#include <map>
#include <optional>
#include <vector>

#include "bench/link_cases.h"
#include "bench/options.h"
#include "tutti/comm/world.h"

namespace bench {

/// Every rank makes one and calls the same; one thread.
class LinkTimer {
 public:
  LinkTimer(const tutti::World& world, const Options& options) : world_(world), options_(options) {}

  Ranks ranks() const;

  /// How long it takes: the median of many, as rank 0 sees them; 0 elsewhere. A plan of no bytes is a barrier. Ranks
  /// that have no part in it sleep meanwhile.
  double time(const LinkCase& one);

 private:
  tutti::World world_;
  Options options_;
  std::map<std::vector<tutti::Rank>, std::optional<tutti::Group>> groups_;
  std::vector<float> memory_;  // of all plans: new memory takes longer to get than most of them
  int timed_ = 0;
};

}  // namespace bench
