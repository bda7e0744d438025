#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "tutti/comm/group.h"

namespace tutti {

/// A sum of float tensors whose bits depend on the addends alone: not on how they are divided over ranks, nor on order,
/// chunks or algorithm. So gradients of the same microbatches give the same bits on any number of ranks. Keeps copies
/// of up to eight addends; where there are more, another 16 bytes for each element (float64: 32). Rounded once, at the
/// end; docs/reproducible.md has the error bound. One thread at a time. After a move, what was moved from is of no use.
///
///   ReproducibleSum sum(gradient, group);
///   for (auto& microbatch : mine) sum.add(gradient_of(microbatch));
///   sum.round_over(group, gradient, microbatches_of_all);
class ReproducibleSum {
 public:
  /// Nothing added yet. Sums have the shape and the type of that tensor: a float, or a complex.
  explicit ReproducibleSum(const at::Tensor& like);
  /// In memory that the group's ranks on this host share, where there is some left: rounded over that group, sums are
  /// read where they lie, if all ranks made theirs so. Of another's backend's groups it is the same as above.
  ReproducibleSum(const at::Tensor& like, const Group& group);
  ReproducibleSum(const ReproducibleSum&) = delete;
  ReproducibleSum& operator=(const ReproducibleSum&) = delete;
  ReproducibleSum(ReproducibleSum&&) = default;
  ReproducibleSum& operator=(ReproducibleSum&&) = default;

  /// Copies the tensor.
  void add(const at::Tensor& tensor);
  void merge(const ReproducibleSum& other);

  /// Puts the sum of all ranks' addends, divided by that number, then rounded, into `result`: on every rank, with the
  /// same number. Blocks. Afterwards nothing is added: the next one begins, in the same memory. When ranks differ in
  /// the count or type of elements or in the number, or one rank's arguments are refused, all throw and nothing is
  /// lost; whatever goes wrong later, what was added is gone.
  void round_over(const Group& group, const at::Tensor& result, std::int64_t divisor = 1,
                  Group::Site site = Group::Site::current());
  /// The same as a new tensor.
  at::Tensor rounded_over(const Group& group, std::int64_t divisor = 1, Group::Site site = Group::Site::current());

  /// The same in two steps, which may be far apart. This one adds up the sums of all ranks; not to be touched until it
  /// is over. Several times as slow: accumulators travel, which above go only where there are many addends, or where
  /// ranks do not share the memory of theirs (docs/reproducible.md).
  Work all_reduce(const Group& group, Group::Site site = Group::Site::current());
  /// The sum, divided by that number before it is rounded.
  at::Tensor rounded(std::int64_t divisor = 1);

  /// As if nothing had been added.
  void clear();

  /// How many tensors this rank has added or merged since the beginning.
  std::int64_t addends() const { return addends_; }
  /// The sum as bytes, to save it or to send it elsewhere; the same memory.
  const at::Tensor& bytes();

 private:
  at::Tensor checked(const at::Tensor& tensor) const;
  at::Tensor memory(std::int64_t elements, at::ScalarType type) const;
  std::vector<const std::byte*> kept() const;
  void keep(const std::byte* addend);
  void add_up_kept();
  Work add_up_over(const Group& group, Group::Site site);
  void round_into(const at::Tensor& result, std::int64_t divisor);
  void grow();
  bool is_shared_with(const Group& group) const;
  void round_where_they_lie(const Group& group, const at::Tensor& result, std::int64_t divisor, Group::Site site);
  void round_in_parts(const Group& group, const at::Tensor& result, std::int64_t divisor,
                      const at::Tensor& kept_by_rank, Group::Site site) const;

  std::optional<Group> group_;  // whose ranks share the memory of what follows
  at::TensorOptions options_;
  std::vector<std::int64_t> sizes_;
  at::ScalarType part_type_;  // floats: of a complex number's parts
  std::int64_t parts_;        // two of each complex number
  std::int64_t addends_ = 0;
  std::vector<at::Tensor> kept_;  // addends, as they are
  std::size_t used_ = 0;          // of those
  bool added_up_ = false;         // whether some are in the accumulators instead
  at::Tensor bytes_;              // accumulators; what they hold counts only then
};

}  // namespace tutti
