#pragma once
// From numbers to the cause of a wrong gradient. Pure.

#include <span>
#include <string>
#include <vector>

#include "tutti/base/mesh_layout.h"
#include "tutti/base/rank.h"
#include "tutti/verify/cause.h"
#include "tutti/verify/products.h"

namespace tutti::verifying {

/// Who computes what. A rank's contribution is the gradient of its rows times their share of the batch: the right
/// gradient is the sum of the contributions of the ranks that belong together.
struct Situation {
  MeshLayout mesh;
  std::vector<std::string> axes;             ///< of it, that gradients are to be averaged over
  std::vector<double> shares;                ///< by rank, of its rows in the batch
  int microbatches = 1;                      ///< that a contribution is the sum of
  double noise = 0;                          ///< of a gradient, relative to it: what needs no explanation
  std::vector<double> expected_losses = {};  ///< by rank, of its rows
  std::vector<double> observed_losses = {};  ///< by rank, where known; otherwise not a number
};

/// Which vector is which in the products of a parameter's gradients.
struct Columns {
  std::size_t ranks = 0;
  std::size_t microbatches = 1;

  std::size_t part(Rank rank, std::size_t microbatch) const { return to_index(rank) * microbatches + microbatch; }
  std::size_t previous(Rank rank) const { return ranks * microbatches + to_index(rank); }     ///< with older weights
  std::size_t whole(Rank rank) const { return ranks * (microbatches + 1) + to_index(rank); }  ///< of the whole batch
  std::size_t observed(Rank rank) const { return ranks * (microbatches + 2) + to_index(rank); }
  std::size_t explaining() const { return ranks * (microbatches + 2); }
  std::size_t all() const { return ranks * (microbatches + 3); }
};

/// What is known of a parameter whose gradient is wrong on some ranks that belong together.
struct Evidence {
  std::string parameter;
  std::size_t elements = 0;
  std::vector<Rank> wrong;        ///< ranks
  std::vector<double> deviation;  ///< of those: the largest error of an element, relative to its contributions
  Products products;              ///< in the order of `Columns`
};

/// Why some of these ranks have a wrong gradient.
struct Diagnosis {
  Cause cause = Cause::unknown;
  std::vector<Rank> ranks = {};   ///< that have it
  std::vector<Rank> blamed = {};  ///< whose contribution is at fault, where some ranks' is
  double factor = 1;              ///< what the right gradient, or what is there of it, is multiplied with
  std::string detail = {};        ///< the axes "tp", the type "bfloat16", the microbatches "2"
};

/// By parameter. What is too small to tell is explained by what explains the others, if that fits.
std::vector<std::vector<Diagnosis>> diagnose(const Situation& situation, std::span<const Evidence> parameters);

}  // namespace tutti::verifying
