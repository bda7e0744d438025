#pragma once
// What `tutti bench --links` tells: a table or JSON.

#include <string>
#include <vector>

#include "bench/recording.h"

namespace bench {

/// How far simulated times are from measured ones.
struct LinkErrors {
  double median = 0;  ///< of their relative sizes
  double worst = 0;
  double scatter = 0;  ///< of the measured times themselves, the median
};

/// A plan that was timed, and what it should take.
struct LinkLine {
  LinkCase timed;
  double simulated = 0;  ///< seconds

  double error() const { return simulated / timed.plan.seconds - 1; }
};

std::vector<LinkLine> compare(const std::vector<LinkCase>& cases, const tutti::plan::Network& network);
LinkErrors errors_of(const std::vector<LinkLine>& lines);

std::string table(const std::string& title, const std::vector<LinkLine>& lines);
/// Both parts of a recording as tables, beside what the network says.
std::string to_text(const Recording& recording, const tutti::plan::Network& network);
/// The network, all that was timed, and the errors of both parts; it can be read as a recording.
std::string to_json(const Recording& recording, const tutti::plan::Network& network);

}  // namespace bench
