#include "tutti/gradient/bucket.h"

#include <cstring>

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include "tutti/comm/exception.h"
#include "tutti/comm/symmetric.h"

namespace tutti::gradient {

namespace {

bool has_symmetric(const Group& group, c10::Device device) { return !group.shape().empty() && device.is_cpu(); }

}  // namespace

Bucket::Bucket(const BucketLayout& layout, std::span<const NamedTensor> all, const Group& group) {
  const c10::NoGradGuard no_grad;
  const auto options = all[layout.slots.front().parameter].tensor.options().requires_grad(false);
  const auto size = options.dtype().itemsize();
  const auto elements = static_cast<std::int64_t>(layout.bytes / size);
  memory = has_symmetric(group, options.device()) ? symmetric_empty({elements}, options, group).zero_()
                                                  : at::zeros({elements}, options);
  for (const auto& slot : layout.slots) {
    const auto parameter = all[slot.parameter].tensor;
    const bool dense = parameter.is_non_overlapping_and_dense();
    numbers.push_back(slot.parameter);
    parameters.push_back(parameter);
    // Not a view to autograd, or `zero_grad` could not detach it.
    views.push_back(at::empty({0}, options));
    views.back().set_(memory.storage(), static_cast<std::int64_t>(slot.offset / size), parameter.sizes(),
                      dense ? at::DimVector(parameter.strides()) : c10::contiguous_strides(parameter.sizes()));
  }
  find_places();
  times.bytes = layout.bytes;
  times.parameters = layout.slots.size();
  empty();
}

void Bucket::empty() {
  missing = numbers.size();
  state = BucketState::filling;
  moved = false;
  work.reset();
}

void Bucket::move(const Group& group) {
  const c10::NoGradGuard no_grad;
  moved = true;
  const auto other = has_symmetric(group, memory.device()) ? symmetric_if_any(memory.sizes(), memory.options(), group)
                                                           : at::empty_like(memory);
  other.copy_(memory);
  memory = other;
  for (auto& view : views) {
    const at::DimVector sizes(view.sizes());
    const at::DimVector strides(view.strides());
    view.set_(memory.storage(), view.storage_offset(), sizes, strides);
  }
  find_places();
}

namespace {

/// Whether its memory holds what it is: a conjugate may be the original, with a note.
bool is_literal(const at::Tensor& tensor) { return !tensor.is_conj() && !tensor.is_neg(); }

}  // namespace

void Bucket::find_places() {
  places_.clear();
  for (const auto& view : views) {
    places_.push_back({.data = static_cast<std::byte*>(view.mutable_data_ptr()),
                       .bytes = view.nbytes(),
                       .type = view.scalar_type(),
                       .usual = view.is_cpu() && view.is_contiguous()});
  }
}

bool Bucket::Place::fits(const at::Tensor& gradient) const {
  return usual && gradient.layout() == at::kStrided && gradient.is_contiguous() && gradient.is_cpu() &&
         gradient.scalar_type() == type && gradient.nbytes() == bytes && is_literal(gradient);
}

bool Bucket::has(std::size_t slot, const at::Tensor& gradient) const {
  const auto& place = places_[slot];
  if (place.fits(gradient)) {
    return gradient.const_data_ptr() == place.data;
  }
  return gradient.layout() == at::kStrided && gradient.const_data_ptr() == place.data &&
         gradient.strides() == views[slot].strides() && gradient.scalar_type() == place.type && is_literal(gradient);
}

void Bucket::put(std::size_t slot, const at::Tensor& gradient) {
  const auto& place = places_[slot];
  if (place.fits(gradient) && gradient.const_data_ptr() != place.data) {
    std::memcpy(place.data, gradient.const_data_ptr(), place.bytes);
  } else if (!has(slot, gradient)) {
    gradient::put(views[slot], gradient);
  }
}

std::vector<ParameterSize> sizes_of(std::span<const NamedTensor> tensors) {
  std::vector<ParameterSize> sizes;
  for (const auto& [name, tensor] : tensors) {
    const auto kind = static_cast<int>(tensor.scalar_type()) * 256 + static_cast<int>(tensor.device().type());
    sizes.push_back({.bytes = tensor.nbytes(), .kind = kind});
  }
  return sizes;
}

void put(const at::Tensor& view, const at::Tensor& gradient) {
  const bool strided = gradient.layout() == at::kStrided;  // sparse ones have no data to point to
  const auto* const data = strided ? gradient.const_data_ptr() : nullptr;
  // The usual one, without the detour of an operator.
  if (strided && data != view.const_data_ptr() && gradient.is_cpu() && gradient.scalar_type() == view.scalar_type() &&
      gradient.sizes() == view.sizes() && gradient.strides() == view.strides() && is_literal(gradient) &&
      is_literal(view)) {
    std::memcpy(view.mutable_data_ptr(), data, view.nbytes());
    return;
  }
  const c10::NoGradGuard no_grad;
  // In the same memory, but turned or conjugated: an operator would read what it has written.
  const bool turned = strided && data == view.const_data_ptr();
  view.copy_(gradient.is_sparse() ? gradient.to_dense()
             : turned             ? gradient.clone().resolve_conj().resolve_neg()
                                  : gradient);
}

}  // namespace tutti::gradient
