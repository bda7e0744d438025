#pragma once

#include <string>
#include <vector>

#include "tutti/base/rank.h"
#include "tutti/verify/cause.h"

namespace tutti {

/// Something that many ranks do otherwise than one process. Ranks are those of the mesh.
struct Finding {
  int step = 0;
  std::string what = {};  ///< the parameter or buffer; empty for the loss
  Cause cause = Cause::unknown;
  std::vector<Rank> ranks = {};            ///< that have it
  std::vector<Rank> blamed = {};           ///< whose contribution, or state, is at fault, where that is known
  double factor = 1;                       ///< what the right gradient, or what is there of it, is multiplied with
  std::string detail = {};                 ///< the axes "tp", the type "bfloat16", the microbatches "2", a rank
  std::string hint = {};                   ///< what it probably is, in words
  double error = 0;                        ///< the largest, relative to what is compared
  double bound = 0;                        ///< what it may be
  std::vector<double> norms = {};          ///< by rank, of the gradients that ranks ended up with
  std::vector<double> contributions = {};  ///< by rank, of what one process computes from that rank's rows

  /// "first.weight is scaled by 4 on ranks 0-3: contributions were added up and not divided by their number"
  std::string sentence() const;
};

/// What `verify` found; the same on all ranks.
struct VerifyReport {
  struct Loss {
    double together = 0;  ///< the mean over all rows of all ranks
    double alone = 0;     ///< of one process, with the same weights
  };

  std::string mesh = {};               ///< "dp=2,tp=2"
  int ranks = 0;                       ///< in it
  int group = 0;                       ///< that gradients are averaged over
  int steps = 0;                       ///< that were taken; fewer than asked for when one was wrong
  std::size_t parameters = 0;          ///< of this mesh, each once
  std::size_t elements = 0;            ///< of them
  double closeness = 0;                ///< the largest error of a right gradient as a part of its bound
  double weights_error = 0;            ///< after the last step, relative to how far they moved
  std::vector<Loss> losses = {};       ///< by step
  std::vector<Finding> findings = {};  ///< the first that went wrong first

  bool ok() const { return findings.empty(); }

  /// A few lines: PASS with figures, or FAIL with what is wrong, where, and why.
  std::string text() const;
  std::string json() const;
};

/// Adds the report as a line of JSON to a file. Throws when that cannot be.
void append(const VerifyReport& report, const std::string& path);

/// Prints the text on rank 0. What main returns: 0 where all is right, 1 otherwise.
int conclude(const VerifyReport& report, Rank rank);

}  // namespace tutti
