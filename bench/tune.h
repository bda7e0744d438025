#pragma once
// Which of many ways is quickest, for each size: `tutti bench --tune`.

#include <string>
#include <vector>

#include "bench/trials.h"
#include "tutti/plan/tuning.h"

namespace bench {

struct TuneOptions {
  std::vector<std::string> ops;
  std::vector<std::string> memories;  ///< "symmetric", "private"
  std::vector<std::size_t> sizes;     ///< of blocks, in order
  std::string dtype = "float32";
  double seconds_per_size = 1;
  bool json = false;
  std::string file;  ///< what was found is added to it; empty: to none
};

/// What was chosen for one size, timed again as programs will use it, beside the quickest.
struct Check {
  std::string chosen = {};
  double seconds = 0;
  std::string best = {};  ///< of those that took turns with it
  double best_seconds = 0;
  double behind = 1;  ///< how much longer than the quickest it takes, turn by turn: 1 is as long
};

/// What was tried for one operation in one kind of memory, what was chosen, and what that takes when it is used.
struct Grid {
  std::string op;
  std::string memory;
  std::string shape;  ///< of the group
  std::vector<tutti::plan::TriedSize> sizes = {};
  tutti::plan::Choices choices = {};
  std::vector<Check> checks = {};  ///< by size

  /// How much longer than the quickest what was chosen takes, where that is most.
  double worst() const;
};

/// Tries everything, prints the grids, and keeps what was found. All ranks call it; returns what the program exits
/// with.
int tune(const tutti::Group& group, const TuneOptions& options);

/// A row for each choice, a column for each size, in microseconds.
std::string to_text(const Grid& grid);
std::string to_json(const std::vector<Grid>& grids);

}  // namespace bench
