#pragma once
// Our own collectives, through the same Group that a user has, as something to be timed.

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "bench/measure.h"
#include "tutti/comm/group.h"

namespace bench {

/// Its ranks; what timing needs of them goes over this group, and not over one under test.
class GroupWorld final : public World {
 public:
  explicit GroupWorld(const tutti::Group& group) : group_(group.blocking()) {}
  std::size_t rank() const override { return tutti::to_index(group_.rank()); }
  std::size_t ranks() const override { return static_cast<std::size_t>(group_.size()); }
  void barrier() override { group_.barrier(); }
  double agree(double value) override;
  /// Valid on every rank.
  std::vector<double> slowest(std::vector<double> values) override;

 private:
  tutti::Group group_;
};

/// One operation on tensors of one size: how to run it, and what must be true afterwards.
struct CollectiveTrial {
  std::vector<at::Tensor> tensors;  ///< all that the operation touches
  std::function<void()> fill = {};
  std::function<void()> run = {};
  std::function<bool()> right = {};
  std::size_t bytes = 0;  ///< as NCCL's tests count them
  std::size_t block = 0;  ///< of what one rank contributes or gets, by which operations are chosen

  /// Writes all tensors anew.
  void touch() const;
};

/// Runs it once; ends the program when the result is wrong. All ranks call it.
void verify(World& world, const CollectiveTrial& trial);

/// Makes them. Ends the program when there is no such operation or type.
class Trials {
 public:
  Trials(const tutti::Group& group, const std::string& dtype, bool symmetric, bool reproducible);
  CollectiveTrial make(const std::string& op, std::size_t bytes) const;

 private:
  at::Tensor empty(int64_t count) const;

  tutti::Group group_;
  at::ScalarType type_;
  bool symmetric_;
  tutti::ReduceOp sum_;
};

}  // namespace bench
