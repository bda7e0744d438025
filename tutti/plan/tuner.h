#pragma once

#include <string>
#include <vector>

#include "tutti/plan/choice.h"

namespace tutti::plan {

/// What a group is made of, as far as it decides what is quick there.
struct GroupShape {
  std::string engine;              ///< what moves its bytes: "shm", "mpi (Open MPI v5.0.11)"
  std::vector<int> hosts;          ///< ranks of each
  std::vector<int> switches = {};  ///< hosts at each, which come one after the other; empty: all at one

  int ranks() const;
  /// What `text` gives: "shm 4", "mpi (Open MPI v5.0.11) 2+2", "mpi (MPICH 5.0.2) 2+2|2+2" where hosts are at two
  /// switches.
  static GroupShape parse(std::string_view text);
  std::string text() const;
};

/// What is worth trying for such an operation on blocks of so many bytes; the first is nothing: the engine's own.
std::vector<std::optional<Choice>> candidates(Op op, const GroupShape& shape, std::size_t bytes);

/// What was tried with one size.
struct Tried {
  std::optional<Choice> choice;
  double seconds = 0;
  /// Took turns with the others until the end. What dropped out was behind, and its time is of other moments, which may
  /// have been calmer: it is not chosen.
  bool to_the_end = true;
};
struct TriedSize {
  std::size_t bytes = 0;
  std::vector<Tried> tried;  ///< at least one that went to the end
};

/// Of those that are as quick as any (within 2 %), the engine's own, else what `before` was, else the quickest.
const Tried& pick(const TriedSize& size, const std::optional<Choice>& before = {});

/// What to choose for all sizes: up to the middle (of logarithms) between two that were tried, as for the smaller one.
/// Sizes go up.
Choices choose(const std::vector<TriedSize>& sizes);

}  // namespace tutti::plan
