#pragma once

#include <vector>

#include "tutti/gradient/bucket.h"
#include "tutti/gradient/options.h"

namespace tutti::gradient {

/// Makes the ranks' buffers equal, while backward runs. One thread at a time.
class BufferSync {
 public:
  BufferSync(std::vector<NamedTensor> buffers, Buffers policy, const Group& group);

  /// Sends what the buffers are now. Those of one rank are sent by `from`.
  void start(Rank from);
  /// Waits, and sets them.
  void finish();

 private:
  const std::vector<NamedTensor> buffers_;
  const Group group_;
  const Buffers policy_;
  std::vector<Bucket> buckets_;  // one for each type
};

}  // namespace tutti::gradient
