#include "tutti/gradient/exact_bucket.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include "tutti/comm/prepare.h"
#include "tutti/comm/symmetric.h"
#include "tutti/kernels/reproducible.h"

namespace tutti::gradient {
namespace {

std::size_t parts_of(const at::Tensor& tensor) {
  return static_cast<std::size_t>(tensor.numel()) * (tensor.is_complex() ? 2 : 1);
}

bool is_whole_number_to_divide_by(double divisor) {
  return divisor >= 1 && divisor <= static_cast<double>(kernels::kMostDivisor) && std::floor(divisor) == divisor;
}

/// What a sum is divided by before it is rounded; by anything else afterwards.
std::size_t whole_part(double divisor) {
  return is_whole_number_to_divide_by(divisor) ? static_cast<std::size_t>(divisor) : 1;
}

at::Tensor as_floats(const at::Tensor& memory) {
  return memory.is_complex() ? at::view_as_real(memory).view({-1}) : memory;
}

/// Where gradients did not fit once, fewer are kept from then on: with accumulators, too, they take more memory.
constexpr std::size_t kKeptBesideSums = 4;

/// Adds sums of so many floats to others.
void merge(kernels::DType kind, const std::byte* from, std::byte* to, std::size_t count) {
  const std::array<const std::byte*, 2> both{to, from};
  kernels::reduce({.op = ReduceOp::sum, .dtype = kind}, both, {&to, 1}, count);
}

/// As it lies in memory, which is as `like` does.
at::Tensor laid_out(const at::Tensor& gradient, const at::Tensor& like) {
  const bool as_it_is = gradient.layout() == at::kStrided && !gradient.is_conj() && !gradient.is_neg() &&
                        gradient.scalar_type() == like.scalar_type() && gradient.strides() == like.strides();
  if (as_it_is) {
    return gradient;
  }
  auto plain = at::empty_strided(like.sizes(), like.strides(), like.options());
  put(plain, gradient);
  return plain;
}

}  // namespace

std::int64_t ExactBucket::most_addends() { return static_cast<std::int64_t>(kernels::kMostAddends); }

ExactBucket::ExactBucket(const Bucket& bucket, const Group& group)
    : bucket_(bucket),
      group_(group),
      part_(value_or_throw(to_dtype(c10::toRealValueType(bucket.memory.scalar_type())))),
      width_(kernels::size_of(kernels::accumulator_of(part_))),
      counts_(bucket.views.size()),
      most_kept_(engine::kMostWholeAddends) {}

ExactBucket::Range ExactBucket::range_of(std::size_t slot) const {
  const auto& view = bucket_.views[slot];
  const std::size_t parts = view.is_complex() ? 2 : 1;
  return {static_cast<std::size_t>(view.storage_offset()) * parts, parts_of(view)};
}

std::byte* ExactBucket::kept_at(std::size_t number, std::size_t slot) const {
  return writable_bytes_of(kept_[number]).data() + range_of(slot).begin * kernels::size_of(part_);
}

std::byte* ExactBucket::sums_at(std::size_t slot) const {
  return writable_bytes_of(sums_).data() + range_of(slot).begin * width_;
}

/// Where all ranks can read them, if there is room; else they are as right.
at::Tensor ExactBucket::zeros(std::int64_t elements, const at::TensorOptions& options) const {
  return symmetric_if_any({elements}, options, group_).zero_();
}

void ExactBucket::begin_sums() {
  if (!sums_.defined()) {
    sums_ = zeros(static_cast<std::int64_t>(parts_of(bucket_.memory) * width_), at::kByte);
    most_kept_ = kKeptBesideSums;
  } else if (!has_sums_) {
    sums_.zero_();
  }
  has_sums_ = true;
}

void ExactBucket::add(std::size_t slot, const at::Tensor& gradient) {
  const c10::NoGradGuard no_grad;
  const auto plain = laid_out(gradient, bucket_.views[slot]);
  const auto bytes = bytes_of(plain);
  if (counts_[slot] >= most_kept_) {
    begin_sums();
    add_kept(slot, sums_at(slot));
    counts_[slot] = 0;
  }
  if (counts_[slot] == kept_.size()) {
    kept_.push_back(zeros(bucket_.memory.numel(), bucket_.memory.options()));
  }
  if (!bytes.empty()) {
    std::memcpy(kept_at(counts_[slot], slot), bytes.data(), bytes.size());
  }
  ++counts_[slot];
}

void ExactBucket::add_kept(std::size_t slot, std::byte* sums) const {
  std::vector<const std::byte*> addends;
  for (std::size_t number = 0; number < counts_[slot]; ++number) {
    addends.push_back(kept_at(number, slot));
  }
  if (!addends.empty()) {
    kernels::accumulate(part_, addends, sums, range_of(slot).count);
  }
}

Work ExactBucket::round(double divisor) {
  Summands summands{.addends = {}, .sums = has_sums_ ? sums_ : at::Tensor()};
  const auto most = counts_.empty() ? 0 : *std::max_element(counts_.begin(), counts_.end());
  for (std::size_t number = 0; number < most; ++number) {
    summands.addends.push_back(as_floats(kept_[number]));
  }
  for (std::size_t slot = 0; slot < counts_.size(); ++slot) {
    for (auto number = counts_[slot]; number < most; ++number) {  // other parameters have more
      std::memset(kept_at(number, slot), 0, range_of(slot).count * kernels::size_of(part_));
    }
  }
  return group_.round_sums(as_floats(bucket_.memory), summands, static_cast<std::int64_t>(whole_part(divisor)));
}

void ExactBucket::finish(std::size_t slot, double divisor) const {
  if (!is_whole_number_to_divide_by(divisor)) {
    const c10::NoGradGuard no_grad;
    bucket_.views[slot].div_(divisor);
  }
}

/// What was kept is still as this rank had it.
void ExactBucket::round_again(std::size_t slot, std::span<const at::Tensor> gradients, double divisor) {
  const auto count = range_of(slot).count;
  const auto kind = kernels::accumulator_of(part_);
  const auto all = at::zeros({static_cast<std::int64_t>(count * width_)}, at::kByte);
  auto* const sums = writable_bytes_of(all).data();
  add_kept(slot, sums);
  if (has_sums_) {
    merge(kind, sums_at(slot), sums, count);
  }
  for (const auto& gradient : gradients) {
    const auto plain = laid_out(gradient, bucket_.views[slot]);
    const auto* const from = bytes_of(plain).data();
    kernels::accumulate(part_, {&from, 1}, sums, count);
  }
  Reduce reduce(ReduceOp::sum);
  reduce.read_as = kind;
  group_.blocking().all_reduce(all, reduce).wait();
  auto* const to = static_cast<std::byte*>(bucket_.views[slot].data_ptr());
  kernels::round_accumulators(part_, sums, {&to, 1}, count, {.divisor = whole_part(divisor)});
  finish(slot, divisor);
}

void ExactBucket::clear() {
  std::fill(counts_.begin(), counts_.end(), 0);
  has_sums_ = false;
  kept_.resize(std::min(kept_.size(), most_kept_));
}

}  // namespace tutti::gradient
