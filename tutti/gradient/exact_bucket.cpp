#include "tutti/gradient/exact_bucket.h"

#include <array>
#include <cmath>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include "tutti/comm/prepare.h"
#include "tutti/kernels/reproducible.h"

namespace tutti::gradient {
namespace {

std::size_t parts_of(const at::Tensor& tensor) {
  return static_cast<std::size_t>(tensor.numel()) * (tensor.is_complex() ? 2 : 1);
}

bool is_whole_number_to_divide_by(double divisor) {
  return divisor >= 1 && divisor <= static_cast<double>(kernels::kMostDivisor) && std::floor(divisor) == divisor;
}

}  // namespace

std::int64_t ExactBucket::most_addends() { return static_cast<std::int64_t>(kernels::kMostAddends); }

ExactBucket::ExactBucket(const Bucket& bucket, const Group& group)
    : bucket_(bucket),
      group_(group),
      part_(value_or_throw(to_dtype(c10::toRealValueType(bucket.memory.scalar_type())))),
      width_(kernels::size_of(kernels::accumulator_of(part_))),
      sums_(memory_for(static_cast<std::int64_t>(parts_of(bucket.memory) * width_), at::kByte, group)) {}

ExactBucket::Range ExactBucket::range_of(std::size_t slot) const {
  const auto& view = bucket_.views[slot];
  const std::size_t parts = view.is_complex() ? 2 : 1;
  return {static_cast<std::size_t>(view.storage_offset()) * parts, parts_of(view)};
}

/// The gradient may lie in any way; sums lie as the view does.
void ExactBucket::accumulate(const at::Tensor& gradient, const at::Tensor& like, std::byte* sums) const {
  const c10::NoGradGuard no_grad;
  const bool as_it_is = gradient.layout() == at::kStrided && !gradient.is_conj() && !gradient.is_neg() &&
                        gradient.scalar_type() == like.scalar_type() && gradient.strides() == like.strides();
  at::Tensor plain = gradient;
  if (!as_it_is) {
    plain = at::empty_strided(like.sizes(), like.strides(), like.options());
    put(plain, gradient);
  }
  const auto* const from = static_cast<const std::byte*>(plain.const_data_ptr());
  kernels::accumulate(part_, {&from, 1}, sums, parts_of(like));
}

void ExactBucket::add(std::size_t slot, const at::Tensor& gradient) {
  accumulate(gradient, bucket_.views[slot], writable_bytes_of(sums_).data() + range_of(slot).begin * width_);
}

Work ExactBucket::all_reduce() {
  Reduce reduce(ReduceOp::sum);
  reduce.read_as = kernels::accumulator_of(part_);
  return group_.all_reduce(sums_, reduce);
}

void ExactBucket::add_of_all(std::size_t slot, std::span<const at::Tensor> gradients) {
  const auto range = range_of(slot);
  auto more = at::zeros({static_cast<std::int64_t>(range.count * width_)}, at::kByte);
  for (const auto& gradient : gradients) {
    accumulate(gradient, bucket_.views[slot], writable_bytes_of(more).data());
  }
  Reduce reduce(ReduceOp::sum);
  reduce.read_as = kernels::accumulator_of(part_);
  group_.blocking().all_reduce(more, reduce).wait();
  auto* const mine = writable_bytes_of(sums_).data() + range.begin * width_;
  const std::array<const std::byte*, 2> sources{mine, bytes_of(more).data()};
  kernels::reduce({.op = ReduceOp::sum, .dtype = *reduce.read_as}, sources, {&mine, 1}, range.count);
}

void ExactBucket::round(std::size_t slot, double divisor) const {
  const c10::NoGradGuard no_grad;
  const auto range = range_of(slot);
  const auto& view = bucket_.views[slot];
  const bool whole = is_whole_number_to_divide_by(divisor);
  auto* const to = static_cast<std::byte*>(view.data_ptr());
  kernels::round_accumulators(part_, bytes_of(sums_).data() + range.begin * width_, {&to, 1}, range.count,
                              {.divisor = whole ? static_cast<std::size_t>(divisor) : 1});
  if (!whole) {
    view.div_(divisor);
  }
}

void ExactBucket::clear() { sums_.zero_(); }

}  // namespace tutti::gradient
