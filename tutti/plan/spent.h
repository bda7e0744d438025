#pragma once

#include <string>

namespace tutti::plan {

/// What the seconds of a chain of things that waited for each other went to.
struct Spent {
  double meeting = 0;    ///< before anything moves
  double latency = 0;    ///< bytes are on their way
  double transfer = 0;   ///< links, as long as it takes a message that has them for itself
  double sharing = 0;    ///< links, longer than that, since others cross them, too
  double messages = 0;   ///< processors begin and end messages, and copy them
  double reduction = 0;  ///< processors add, or copy inside of a rank

  double total() const { return meeting + latency + transfer + sharing + messages + reduction; }
  Spent& operator+=(const Spent& other);
  Spent operator*(double factor) const;
};

/// "61 % transfer, 30 % latency, 9 % reduction": the largest first, those under 1 % left out.
std::string describe(const Spent& spent);

}  // namespace tutti::plan
