#pragma once

#include "tutti/plan/algorithms.h"

namespace tutti::plan {

/// Whether plans can be proved in about 10 seconds and 1 GB: added up rank by rank, before a proof is begun. One
/// thread.
class ProofSize {
 public:
  /// A plan of that shape, by its numbers alone. An error says how large it is, and how large it may be.
  Status add(const Shape& shape);
  /// What one of its ranks does.
  Status add(const Shape& shape, const Program& program);

 private:
  Status check() const;

  double bytes_ = 0;  // of the last one: they are proved one after the other
  double seconds_ = 0;
};

/// The plan, unless it is too large to be proved: then it is not built to its end. Errors as of `check`, too.
Result<Plan> build_provable(const Request& request);

}  // namespace tutti::plan
