#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "tutti/comm/group.h"

namespace tutti {

/// A sum of float tensors whose bits depend on the addends alone: not on how they are divided over ranks, nor on order,
/// chunks or algorithm. So gradients of the same microbatches give the same bits on any number of ranks. Keeps copies
/// of up to eight addends; of more, 16 bytes for each element (float64: 32). Rounded once, at the end;
/// docs/reproducible.md has the error bound. One thread at a time.
///
///   ReproducibleSum sum(gradient);
///   for (auto& microbatch : mine) sum.add(gradient_of(microbatch));
///   sum.round_over(group, gradient, microbatches_of_all);
class ReproducibleSum {
 public:
  /// Nothing added yet. Sums have the shape and the type of that tensor: a float, or a complex.
  explicit ReproducibleSum(const at::Tensor& like);

  /// Copies what it needs of the tensor.
  void add(const at::Tensor& tensor);
  void merge(const ReproducibleSum& other);

  /// Puts the sum of all ranks' addends, divided by that number, then rounded, into `result`: on every rank, with the
  /// same number. Blocks. Afterwards nothing is added: the next one begins, in the same memory. When ranks have
  /// different shapes, types or numbers, all throw and nothing is lost; after other errors the group is of no more use.
  void round_over(const Group& group, const at::Tensor& result, std::int64_t divisor = 1,
                  Group::Site site = Group::Site::current());
  /// The same as a new tensor.
  at::Tensor rounded_over(const Group& group, std::int64_t divisor = 1, Group::Site site = Group::Site::current());

  /// The same in two steps, which may be far apart. This one adds up the sums of all ranks; not to be touched until it
  /// is over. Several times as slow: accumulators travel, which above go only where a rank has more than eight addends.
  Work all_reduce(const Group& group, Group::Site site = Group::Site::current());
  /// The sum, divided by that number before it is rounded.
  at::Tensor rounded(std::int64_t divisor = 1) const;

  /// As if nothing had been added.
  void clear();

  /// How many tensors this rank has added or merged since the beginning.
  std::int64_t addends() const { return addends_; }
  /// The sum as bytes, to save it or to send it elsewhere; the same memory.
  const at::Tensor& bytes();

 private:
  at::Tensor checked(const at::Tensor& tensor) const;
  std::vector<const std::byte*> kept() const;
  void add_up_kept();
  void round_into(const at::Tensor& result, std::int64_t divisor) const;
  void round_in_parts(const Group& group, const at::Tensor& result, std::int64_t divisor,
                      const at::Tensor& kept_by_rank, Group::Site site) const;

  at::TensorOptions options_;
  std::vector<std::int64_t> sizes_;
  at::ScalarType part_type_;  // floats: of a complex number's parts
  std::int64_t parts_;        // two of each complex number
  std::int64_t addends_ = 0;
  std::vector<at::Tensor> kept_;  // the first few addends, as they are
  std::size_t used_ = 0;          // of those
  at::Tensor bytes_;              // accumulators; from the first one on that was not kept
};

}  // namespace tutti
