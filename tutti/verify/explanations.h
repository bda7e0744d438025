#pragma once
// What may be wrong with gradients, as combinations of contributions. Pure.

#include <optional>
#include <string>
#include <vector>

#include "tutti/verify/diagnose.h"

namespace tutti::verifying {

/// One way to be wrong: what a rank then has, as factors of the vectors before the observed ones.
struct Explanation {
  Cause cause = Cause::unknown;
  std::vector<Rank> blamed = {};
  std::string detail = {};
  std::vector<std::vector<double>> combinations = {};  ///< one for all ranks of the group, or one for each
  bool any_factor = false;                             ///< or any multiple of it
  double unit = 1;                                     ///< what a diagnosis calls a factor of one

  const std::vector<double>& of(std::size_t member) const {
    return combinations.size() == 1 ? combinations[0] : combinations[member];
  }
};

/// The ranks that belong together with that rank along these axes of the mesh, itself among them.
std::vector<Rank> together(const Situation& situation, Rank rank, const std::vector<std::string>& axes);

/// Those that are worth trying for ranks that belong together, the simplest first.
std::vector<Explanation> explanations(const Situation& situation, const std::vector<Rank>& group);

/// What to call it that ranks' contributions count so much, where 1 is right for those of the group and 0 for others.
/// Nothing where they count as they should.
std::optional<Diagnosis> name_factors(const Situation& situation, const std::vector<Rank>& group,
                                      const std::vector<double>& factors);

}  // namespace tutti::verifying
