#pragma once

#include <span>
#include <vector>

#include "tutti/gradient/bucket.h"

namespace tutti::gradient {

/// A bucket's gradients as sums whose bits depend on the addends alone (docs/reproducible.md): any number of gradients
/// of each parameter, on any number of ranks, in any order. Up to eight of each are kept as they are, each in as much
/// memory as the bucket has. Where there are more they are added to accumulators, four times as large, four at a time.
/// One thread at a time.
class ExactBucket {
 public:
  /// Nothing added yet. The bucket has to live as long.
  ExactBucket(const Bucket& bucket, const Group& group);

  void add(std::size_t slot, const at::Tensor& gradient);

  /// Adds up what all ranks have, to be divided by the same number and rounded once. What the bucket's memory holds is
  /// lost. When the Work is over, `finish` puts those that are wanted where they belong.
  Work round(double divisor);
  void finish(std::size_t slot, double divisor) const;

  /// Once more for one parameter, with these, too, which came when the others had left. Blocks.
  void round_again(std::size_t slot, std::span<const at::Tensor> gradients, double divisor);

  /// Back to nothing.
  void clear();

  /// One sum can have so many addends, of all ranks together.
  static std::int64_t most_addends();

 private:
  struct Range {
    std::size_t begin = 0;  // in floats; a complex number is two
    std::size_t count = 0;
  };
  Range range_of(std::size_t slot) const;
  std::byte* kept_at(std::size_t number, std::size_t slot) const;
  std::byte* sums_at(std::size_t slot) const;
  void begin_sums();
  at::Tensor zeros(std::int64_t elements, const at::TensorOptions& options) const;
  void add_kept(std::size_t slot, std::byte* sums) const;

  const Bucket& bucket_;
  const Group group_;
  const kernels::DType part_;        // what is added: of complex numbers their parts
  const std::size_t width_;          // of an accumulator, in bytes
  std::vector<at::Tensor> kept_;     // gradients, each where its parameter's lie in the bucket
  std::vector<std::size_t> counts_;  // by slot, of those
  std::size_t most_kept_;
  at::Tensor sums_;        // accumulators
  bool has_sums_ = false;  // whether what these hold counts
};

}  // namespace tutti::gradient
