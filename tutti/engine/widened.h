#pragma once

#include <vector>

#include "tutti/engine/call.h"

namespace tutti::engine {

/// A reduction of 16- or 8-bit floats, done in float32 from beginning to end where sums of sums are sent on: so it is
/// rounded once. Keeps its memory from call to call. One thread at a time.
class Widened {
 public:
  static bool is_needed(const Call& call);

  /// The call in float32, with copies of the inputs. Valid until the next one.
  const Call& begin(const Call& call);
  /// Rounds the results into the outputs of the call.
  void finish(const Call& call);

 private:
  Call wide_;
  std::vector<float> in_;
  std::vector<float> out_;
};

}  // namespace tutti::engine
