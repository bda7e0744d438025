#pragma once

#include <span>

#include "tutti/gradient/bucket.h"

namespace tutti::gradient {

/// A bucket's gradients as sums whose bits depend on the addends alone (docs/reproducible.md): any number of gradients
/// of each parameter, on any number of ranks, in any order. Four times as large as the bucket. One thread at a time.
class ExactBucket {
 public:
  /// Nothing added yet. The bucket has to live as long.
  ExactBucket(const Bucket& bucket, const Group& group);

  void add(std::size_t slot, const at::Tensor& gradient);

  /// Adds up what all ranks have.
  Work all_reduce();

  /// Adds what all ranks have of these, too, to sums that are those of all ranks already. Blocks.
  void add_of_all(std::size_t slot, std::span<const at::Tensor> gradients);

  /// The sum of one parameter's, divided and rounded once, goes where its gradient belongs.
  void round(std::size_t slot, double divisor) const;

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
  void accumulate(const at::Tensor& gradient, const at::Tensor& like, std::byte* sums) const;

  const Bucket& bucket_;
  const Group group_;
  const kernels::DType part_;  // what is added: of complex numbers their parts
  const std::size_t width_;    // of an accumulator, in bytes
  at::Tensor sums_;
};

}  // namespace tutti::gradient
