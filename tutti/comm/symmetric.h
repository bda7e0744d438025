#pragma once

#include <memory>

#include <ATen/core/Tensor.h>
#include <c10/core/Allocator.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "tutti/engine/reach.h"

namespace tutti {

/// A tensor in memory that the group's ranks on this host share: collectives of that group read and write it in place.
/// (A Group is such a process group.) Its contents are undefined, as torch::empty's. Only this rank calls it; making
/// one again and again is cheap. It may outlive the group. Throws when the memory cannot be had, or the group's ranks
/// share none.
at::Tensor symmetric_empty(at::IntArrayRef sizes, const at::TensorOptions& options,
                           const c10::intrusive_ptr<c10d::ProcessGroup>& group);

/// The same; where there is no such memory left, ordinary one: slower, and as right.
at::Tensor symmetric_if_any(at::IntArrayRef sizes, const at::TensorOptions& options,
                            const c10::intrusive_ptr<c10d::ProcessGroup>& group);

/// Whether collectives of that group take the direct way with this tensor.
bool is_symmetric(const at::Tensor& tensor, const c10::intrusive_ptr<c10d::ProcessGroup>& group);

/// The same, for who has the group's backend in hand.
at::Tensor symmetric_empty(at::IntArrayRef sizes, const at::TensorOptions& options, c10d::Backend& backend);
bool is_symmetric(const at::Tensor& tensor, c10d::Backend& backend);

/// LibTorch's view of a group's symmetric memory. What it allocated may outlive it.
class SymmetricAllocator final : public c10::Allocator {
 public:
  explicit SymmetricAllocator(std::shared_ptr<engine::Reach> reach) : reach_(std::move(reach)) {}

  c10::DataPtr allocate(std::size_t bytes) override;
  void copy_data(void* to, const void* from, std::size_t bytes) const override;

  /// One contiguous tensor.
  at::Tensor empty(at::IntArrayRef sizes, const at::TensorOptions& options);

 private:
  std::shared_ptr<engine::Reach> reach_;
};

}  // namespace tutti
