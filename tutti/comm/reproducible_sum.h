#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "tutti/comm/group.h"

namespace tutti {

/// A sum of float tensors whose bits depend on the addends alone: not on how they are divided over ranks, nor on order,
/// chunks or algorithm. So gradients of the same microbatches give the same bits on any number of ranks. Takes 16 bytes
/// for each element (float64: 32), and is rounded once, at the end; docs/reproducible.md has the error bound.
/// One thread at a time.
///
///   ReproducibleSum sum(gradient);
///   for (auto& microbatch : mine) sum.add(gradient_of(microbatch));
///   sum.all_reduce(group).wait();
///   gradient.copy_(sum.rounded(microbatches_of_all));
class ReproducibleSum {
 public:
  /// Nothing added yet. Sums have the shape and the type of that tensor: a float, or a complex.
  explicit ReproducibleSum(const at::Tensor& like);

  void add(const at::Tensor& tensor);
  void merge(const ReproducibleSum& other);

  /// Adds up those of all ranks. Not to be touched until it is over.
  Work all_reduce(const Group& group, Group::Site site = Group::Site::current());

  /// The sum, divided by that number before it is rounded.
  at::Tensor rounded(std::int64_t divisor = 1) const;

  /// How many tensors this rank has added or merged since the beginning.
  std::int64_t addends() const { return addends_; }
  /// The sum as bytes, to save it or to send it elsewhere; the same memory.
  const at::Tensor& bytes() const { return bytes_; }

 private:
  at::Tensor checked(const at::Tensor& tensor) const;

  at::TensorOptions options_;
  std::vector<std::int64_t> sizes_;
  std::int64_t parts_;  // floats: two of each complex number
  std::int64_t addends_ = 0;
  at::Tensor bytes_;
};

}  // namespace tutti
