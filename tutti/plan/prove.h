#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tutti/plan/plan.h"

namespace tutti::plan {

/// Where a plan is wrong, and how.
struct Flaw {
  enum class Kind {
    malformed,  ///< a step names what there is not
    unmatched,  ///< a message that nobody receives or sends, or of another length
    deadlock,   ///< steps that wait for each other
    race,       ///< two steps of which neither waits for the other touch the same piece, and one writes it
    result,     ///< at the end something is missing, twice, or in the wrong place
    undecided,  ///< two steps touch the same piece, and whether one waits for the other takes too long to follow
  };
  Kind kind;
  Rank rank;
  std::optional<std::uint32_t> step;  ///< of that rank's program; nothing when it is about the end
  std::string sentence;               ///< the whole of it, for people
};

std::string_view to_string(Flaw::Kind kind);

/// Follows every piece through a plan, and finds out whether, in whatever order things happen,
///   it ends, even when no message is buffered and those between two ranks come in order;
///   no two steps touch the same memory unless one waits for the other, also where input and output are the same
///   memory; at the end every rank has what the operation promises, each contribution exactly once, and where all ranks
///   get the same sum, it was added in an order that gives all of them the same bits.
/// The first flaw that is found, or nothing. A proof, not a test: nothing is run, and nothing is left to chance.
std::optional<Flaw> prove(const Plan& plan);

/// "rank 2, step 7: receive output 4..6 from rank 1"
std::string describe(const Plan& plan, Rank rank, std::uint32_t step);

}  // namespace tutti::plan
