#pragma once

#include <cstddef>
#include <memory>

namespace tutti {

class Hook;

/// What the gradients of all ranks are divided by, once they are added up: what the loss of a rank means.
enum class Mean {
  per_rank,                ///< each rank counts once, whatever it accumulated: the usual
  per_pass,                ///< each backward pass of each rank counts once
  per_sample,              ///< each sample that `weigh` was told of counts once
  per_token = per_sample,  ///< the same: what is counted is up to the program
};

/// What happens to a model's buffers (running means and the like) in every pass that synchronizes.
enum class Buffers {
  broadcast,  ///< all ranks get those of rank 0
  average,    ///< floats become the ranks' average; others are rank 0's
  leave,
};

/// How gradients are added up.
enum class Reduction {
  usual,  ///< the same bits for the same number of ranks
  /// The bits depend on the gradients of the backward passes alone: not on how passes are divided over ranks, on
  /// buckets or on the algorithm. With Mean::per_pass, 8 microbatches give the same on 1, 2, 3 or 8 ranks.
  reproducible,
};

struct DataParallelOptions {
  std::size_t bucket_bytes = std::size_t{25} << 20;
  std::size_t first_bucket_bytes = std::size_t{1} << 20;
  Mean mean = Mean::per_rank;
  Buffers buffers = Buffers::broadcast;
  /// Ranks may run out of data at different times, and then `join`. Costs one small exchange in each pass.
  bool uneven_data = false;
  Reduction reduction = Reduction::usual;
  /// Backward computes large gradients where they will travel from, as soon as two passes have shown which tensors are
  /// gradients. Off: every gradient is copied. (Not with Reduction::reproducible, which adds up what it gets.)
  bool in_place = true;
  /// What reduces a full bucket; nothing: an all-reduce.
  std::shared_ptr<Hook> hook = nullptr;
};

}  // namespace tutti
