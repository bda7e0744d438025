#pragma once

#include <optional>
#include <span>
#include <vector>

#include "tutti/comm/group.h"
#include "tutti/gradient/layout.h"
#include "tutti/gradient/model_parts.h"
#include "tutti/gradient/step_report.h"

namespace tutti::gradient {

enum class BucketState { filling, in_flight, reduced };

/// Gradients that travel together. One thread at a time.
struct Bucket {
  /// In symmetric memory, where the group has some. All zeros.
  Bucket(const BucketLayout& layout, std::span<const NamedTensor> all, const Group& group);

  /// For the next pass.
  void empty();

  /// To other memory, with all that it holds: somebody looks at this one. In this pass it is not lent any more.
  void move(const Group& group);

  /// Whether the gradient is what lies in that slot, and in every respect.
  bool has(std::size_t slot, const at::Tensor& gradient) const;
  void put(std::size_t slot, const at::Tensor& gradient);

  at::Tensor memory;  ///< one dimension
  std::vector<std::size_t> numbers;
  std::vector<at::Tensor> parameters;
  std::vector<at::Tensor> views;  ///< of memory, each as its parameter lies in its own
  std::size_t missing = 0;        ///< parameters that are not ready yet
  BucketState state = BucketState::filling;
  bool moved = false;  ///< in this pass
  std::optional<Work> work;
  StepReport::Bucket times;

 private:
  /// What has to be known of a view for most gradients. There may be thousands, and each view lies elsewhere in memory.
  struct Place {
    std::byte* data;
    std::size_t bytes;
    at::ScalarType type;
    bool usual;  // contiguous, on the CPU

    /// Whether a gradient can be compared and copied by its address and size alone.
    bool fits(const at::Tensor& gradient) const;
  };

  void find_places();

  std::vector<Place> places_;
};

/// What `lay_out` needs to know of tensors.
std::vector<ParameterSize> sizes_of(std::span<const NamedTensor> tensors);

/// Puts a gradient where it belongs, in whatever form it came.
void put(const at::Tensor& view, const at::Tensor& gradient);

}  // namespace tutti::gradient
