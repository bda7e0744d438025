// How a synchronizer sends its buckets, and gets them back.

#include <algorithm>

#include <fmt/format.h>

#include "tutti/gradient/hook.h"
#include "tutti/gradient/synchronizer.h"

namespace tutti::gradient {
namespace {

using Clock = StepReport::Clock;

}  // namespace

ExactBucket& Synchronizer::sums_of(std::size_t bucket) {
  sums_.resize(buckets_.size());
  if (!sums_[bucket]) {
    sums_[bucket] = std::make_unique<ExactBucket>(buckets_[bucket], group_);
  }
  return *sums_[bucket];
}

/// A gradient goes into its sum; or, where it may turn out that none is needed, or its sum has left, waits.
void Synchronizer::keep_addend(std::size_t index) {
  auto& parameter = parameters_[index];
  auto& gradient = tensor(index).mutable_grad();
  if (++parameter.count * group_.size() > ExactBucket::most_addends()) {
    throw Exception({Code::invalid_argument,
                     fmt::format("DataParallel: parameter '{}' has more gradients than a reproducible sum can take; "
                                 "synchronize more often",
                                 named_[index].name)});
  }
  const bool filling = as_sums_ && buckets_[parameter.bucket].state == BucketState::filling;
  if (pass_ == Pass::paused || filling) {
    sums_of(parameter.bucket).add(parameter.slot, gradient);
  } else {
    const bool own = !gradient.is_sparse() && gradient.data_ptr() == view(index).data_ptr();
    parameter.addends.push_back(own ? gradient.clone() : gradient);
  }
  gradient.reset();
}

void Synchronizer::launch_full() {
  while (next_ < held_ && buckets_[leaving(next_)].missing == 0) {
    launch(leaving(next_++));
  }
}

void Synchronizer::launch(std::size_t index) {
  auto& bucket = buckets_[index];
  bucket.state = BucketState::in_flight;
  bucket.times.started = Clock::now();
  if (options_.hook) {
    bucket.work = options_.hook->reduce({.gradients = bucket.memory,
                                         .parameters = bucket.parameters,
                                         .views = bucket.views,
                                         .index = index,
                                         .generation = generation_,
                                         .reduce = reduce_},
                                        group_);
    return;
  }
  if (is_exact()) {
    bucket.work =
        as_sums_ ? sums_of(index).round(divisor_) : all_reduce(bucket.memory, ReduceOp::reproducible_avg, group_);
    return;
  }
  bucket.work = all_reduce(bucket.memory, reduce_, group_);
}

void Synchronizer::finish(std::size_t index, const Uses& uses) {
  auto& bucket = buckets_[index];
  bucket.work->wait();
  // By its own account, where it has one; else it was there when it was waited for.
  const auto waited = Clock::now() - bucket.times.started;
  const auto own = own_duration(*bucket.work);
  timed_ = timed_ && own;
  bucket.times.reduced =
      bucket.times.started + std::min(waited, own ? std::chrono::duration_cast<Clock::duration>(*own) : waited);
  bucket.work.reset();
  bucket.state = BucketState::reduced;
  for (std::size_t slot = 0; as_sums_ && slot < bucket.numbers.size(); ++slot) {
    const auto use = uses[bucket.numbers[slot]];
    if (use != 0 && (use & kLate) == 0) {
      sums_of(index).finish(slot, divisor_);
    }
  }
  current_.buckets.push_back(bucket.times);
}

/// What is still missing will not come any more in this pass.
void Synchronizer::fill(Bucket& bucket) {
  for (const auto index : bucket.numbers) {
    auto& parameter = parameters_[index];
    if (parameter.arrivals >= parameter.expected) {
      continue;
    }
    auto& gradient = tensor(index).mutable_grad();
    const bool own = gradient.defined() && !gradient.is_sparse() && gradient.data_ptr() == view(index).data_ptr();
    // One that lies elsewhere was put there by hand, or in a paused pass.
    parameter.touched = parameter.touched || (gradient.defined() && !own);
    if (gradient.defined() && own) {
      parameter.kept = gradient.clone();
    }
    if (is_exact() && gradient.defined()) {
      keep_addend(index);
    }
    take_in(index);
  }
  if (bucket.missing > 0) {
    bucket.times.ready = Clock::now();
  }
}

}  // namespace tutti::gradient
