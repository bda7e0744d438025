// How a synchronizer lets backward return before all buckets are back.

#include <algorithm>

#include <ATen/record_function.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include "tutti/gradient/synchronizer.h"

namespace tutti::gradient {
namespace {

using Clock = StepReport::Clock;

double seconds(Clock::duration time) { return std::chrono::duration<double>(time).count(); }

}  // namespace

void Synchronizer::go_ahead(bool on) {
  const std::lock_guard lock(mutex_);
  ahead_ += on ? 1 : -1;
}

/// From which place on buckets should be held in the next pass, as it looks from here.
std::size_t Synchronizer::proposal() const {
  const bool known = ahead_ > 0 && !is_exact() && !journeys_.empty();
  return known ? std::max<std::size_t>(1, first_held(journeys_)) : regular_;
}

void Synchronizer::note_journeys() {
  journeys_.clear();
  if (!timed_) {
    return;
  }
  journeys_.resize(regular_);
  auto free = Clock::time_point::min();
  for (std::size_t place = 0; place < regular_; ++place) {
    const auto& times = buckets_[leaving(place)].times;
    journeys_[leaving(place)] = {.full = seconds(times.ready - current_.first_ready),
                                 .under_way = seconds(times.reduced - std::max(free, times.started))};
    free = times.reduced;
  }
}

/// Not where something is left to be done when all buckets are back.
bool Synchronizer::may_stay_open(const Uses& uses) const {
  if (!all_ahead_ || held_ == regular_ || is_exact()) {
    return false;
  }
  for (std::size_t i = 0; i < uses.size(); ++i) {
    const auto bucket = parameters_[i].bucket;
    if ((uses[i] & kLate) != 0 || (uses[i] != 0 && bucket >= regular_) ||
        (parameters_[i].kept.defined() && bucket >= held_)) {
      return false;
    }
  }
  return true;
}

void Synchronizer::watch(OpenBucket& open, const at::Tensor& tensor) {
  open.watched.push_back(tensor.storage());
  watch_use(open.watched.back(), shared_from_this());
}

void Synchronizer::stay_open(Uses uses) {
  open_ = {.uses = std::move(uses)};
  for (auto place = held_; place < regular_; ++place) {
    watch(open_.buckets.emplace_back(OpenBucket{.index = leaving(place)}), buckets_[leaving(place)].memory);
  }
  pass_ = Pass::open;
}

void Synchronizer::take_later(Take take) {
  const std::lock_guard lock(mutex_);
  if (failure_) {
    std::rethrow_exception(failure_);
  }
  if (pass_ != Pass::open || open_.take) {
    return;
  }
  open_.take = std::move(take);
  open_.state.emplace();
  for (auto& open : open_.buckets) {
    const auto& bucket = buckets_[open.index];
    for (std::size_t slot = 0; slot < bucket.numbers.size(); ++slot) {
      auto& gradient = bucket.parameters[slot].mutable_grad();
      if (gradient.is_same(bucket.views[slot])) {  // else somebody has put another in its place, or none
        gradient.reset();
        open.taken.push_back(slot);
        watch(open, bucket.parameters[slot]);
      }
    }
  }
}

void Synchronizer::settle() {
  const std::lock_guard lock(mutex_);
  settle_locked();
}

void Synchronizer::settle_locked() {
  if (failure_) {
    std::rethrow_exception(failure_);
  }
  while (pass_ == Pass::open) {
    bring_home();
  }
}

/// Waits for the next bucket. What goes wrong is for good.
void Synchronizer::bring_home() {
  try {
    const at::DisableRecordFunctionGuard unseen;
    const c10::NoGradGuard no_grad;
    const auto began = Clock::now();
    const auto& open = open_.buckets.front();
    finish(open.index, open_.uses);
    current_.last_reduced = Clock::now();
    current_.waited += current_.last_reduced - began;
    stop_watching(open);
    if (open_.take) {
      take_home(open);
    }
    open_.buckets.erase(open_.buckets.begin());
  } catch (const std::exception&) {
    failure_ = std::current_exception();
    pass_ = Pass::broken;
    stop_all_watching();
    abort_group();
    throw;
  }
  if (open_.buckets.empty()) {
    close_pass();
    to_learn_ = std::move(open_.uses);
    open_ = {};
  }
}

/// What was asked for with the gradients, now that they are there. They are for nobody else.
void Synchronizer::take_home(const OpenBucket& open) const {
  const at::ThreadLocalStateGuard as_when_asked(*open_.state);
  const at::DisableRecordFunctionGuard unseen;
  const auto& bucket = buckets_[open.index];
  std::vector<at::Tensor> parameters;
  std::vector<at::Tensor> others;  // gradients that they have got meanwhile
  for (const auto slot : open.taken) {
    parameters.push_back(bucket.parameters[slot]);
    others.push_back(std::exchange(parameters.back().mutable_grad(), bucket.views[slot]));
  }
  open_.take(parameters);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    parameters[i].mutable_grad() = others[i];
  }
}

void Synchronizer::stop_watching(const OpenBucket& open) const {
  for (const auto& storage : open.watched) {
    gradient::stop_watching(storage, this);
  }
}

void Synchronizer::stop_all_watching() const {
  for (const auto& open : open_.buckets) {
    stop_watching(open);
  }
}

/// Whether somebody who uses that has to wait.
bool Synchronizer::waits_for(const c10::StorageImpl* storage) const {
  return std::any_of(open_.buckets.begin(), open_.buckets.end(), [&](const OpenBucket& open) {
    return std::any_of(open.watched.begin(), open.watched.end(),
                       [&](const c10::Storage& each) { return each.unsafeGetStorageImpl() == storage; });
  });
}

void Synchronizer::about_to_be_used(const c10::StorageImpl* storage) noexcept {
  const std::lock_guard lock(mutex_);
  try {
    while (pass_ == Pass::open && waits_for(storage)) {
      bring_home();
    }
  } catch (const std::exception& error) {
    // An operator cannot be stopped from here: the next backward is.
    say(fmt::format("gradients did not come back, so parameters are not what they should be: {}", error.what()));
  }
}

}  // namespace tutti::gradient
