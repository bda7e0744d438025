// What a synchronizer does when backward is over.

#include <algorithm>

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tutti/gradient/hook.h"
#include "tutti/gradient/synchronizer.h"

namespace tutti::gradient {
namespace {

using Clock = StepReport::Clock;

// What ranks tell each other when a pass ends: words of which every rank gets the bits that any rank has set.
constexpr std::size_t kPasses = 0;
constexpr std::size_t kNotPasses = 1;
constexpr std::size_t kOtherOrder = 2;
constexpr std::size_t kNotAhead = 3;
constexpr std::size_t kHeld = 4;
constexpr std::size_t kFirst = 5;  // of the parameters'

}  // namespace

void Synchronizer::end_pass() {
  const c10::NoGradGuard no_grad;
  const auto joined = passes_ == 0;
  pass_ = Pass::broken;  // unless all goes well
  current_.last_ready = Clock::now();
  for (; next_ < held_; ++next_) {
    fill(buckets_[leaving(next_)]);
    launch(leaving(next_));
  }
  for (auto i = held_; i < buckets_.size(); ++i) {
    fill(buckets_[i]);
  }
  auto agreement = start_agreeing();
  for (; next_ < regular_; ++next_) {
    launch(leaving(next_));
  }
  auto uses = agreed(agreement);
  const bool stays = may_stay_open(uses);
  for (std::size_t place = 0; place < (stays ? held_ : regular_); ++place) {
    finish(leaving(place), uses);
  }
  reduce_aside(uses);
  add_late(uses);
  buffers_.finish();
  current_.last_reduced = Clock::now();
  current_.waited = current_.last_reduced - current_.last_ready;
  set_gradients(uses);
  forget_pass(joined);
  if (stays) {
    stay_open(std::move(uses));
    return;
  }
  close_pass();
  if (all_ahead_ && !is_exact()) {
    to_learn_ = std::move(uses);  // where those do that left it open
  } else {
    learn(uses);
  }
}

void Synchronizer::forget_pass(bool joined) {
  for (const auto& sums : sums_) {
    if (sums) {
      sums->clear();
    }
  }
  for (auto& parameter : parameters_) {
    parameter.expected = joined ? parameter.expected : std::max(1, parameter.arrivals);
    parameter.touched = false;
    parameter.kept.reset();
    parameter.late.reset();
    parameter.addends.clear();
    parameter.count = 0;
  }
  passes_ = 0;
  samples_ = 0;
}

void Synchronizer::close_pass() {
  note_journeys();
  last_ = std::move(current_);
  debug(log_, last_->text());
  pass_ = Pass::none;
}

Synchronizer::Agreement Synchronizer::start_agreeing() const {
  auto words = at::empty({static_cast<std::int64_t>(kFirst + parameters_.size())}, at::kInt);
  auto* const values = words.data_ptr<std::int32_t>();
  const bool joined = passes_ == 0;
  const bool first = group_.rank() == Rank{0};
  values[kPasses] = passes_;
  values[kNotPasses] = joined ? 0 : ~passes_;
  values[kOtherOrder] = other_order_ && first ? 1 : 0;
  values[kNotAhead] = ahead_ > 0 ? 0 : 1;
  values[kHeld] = first ? static_cast<std::int32_t>(joined ? held_ : proposal()) : 0;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const auto& parameter = parameters_[i];
    const bool late = parameter.late.defined() || parameter.addends.size() > (as_sums_ ? 0 : 1);
    values[kFirst + i] = (parameter.touched ? kUsed : 0) | (late ? kLate : 0);
  }
  return {.words = words, .work = group_.all_reduce(words, ReduceOp::bor)};
}

/// By parameter what any rank says of it. Also whether ranks are as far as each other.
Synchronizer::Uses Synchronizer::agreed(Agreement& agreement) {
  agreement.work.wait();
  const auto* const values = agreement.words.data_ptr<std::int32_t>();
  if (options_.mean == Mean::per_rank && (values[kPasses] & values[kNotPasses]) != 0) {
    report_passes();
  }
  other_order_ = values[kOtherOrder] != 0;
  all_ahead_ = values[kNotAhead] == 0;
  next_held_ = static_cast<std::size_t>(values[kHeld]);
  return {values + kFirst, values + kFirst + parameters_.size()};
}

void Synchronizer::report_passes() {
  auto all = at::empty({group_.size()}, at::kInt);
  group_.all_gather(all, at::full({1}, passes_, at::kInt)).wait();
  const auto* const counts = all.data_ptr<std::int32_t>();
  // Ranks without any have joined.
  int first = 0;
  while (first < group_.size() - 1 && counts[first] == 0) {
    ++first;
  }
  int other = first + 1;
  while (other < group_.size() - 1 && (counts[other] == counts[first] || counts[other] == 0)) {
    ++other;
  }
  throw Exception({Code::mismatch,
                   fmt::format("rank {} synchronizes after {} backward passes, rank {} after {}: ranks have to pause "
                               "(no_sync) for the same ones, or Mean::per_pass or per_sample has to say what counts",
                               first, counts[first], other, counts[other]),
                   Rank{other}});
}

void Synchronizer::reduce_aside(const Uses& uses) {
  for (auto i = regular_; i < buckets_.size(); ++i) {
    const auto& numbers = buckets_[i].numbers;
    if (std::any_of(numbers.begin(), numbers.end(), [&](std::size_t index) { return uses[index] != 0; })) {
      launch(i);
      finish(i, uses);
    }
  }
}

/// Gradients that came when their bucket had left.
void Synchronizer::add_late(const Uses& uses) {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if ((uses[i] & kLate) == 0) {
      continue;
    }
    if (is_exact()) {
      sums_of(parameters_[i].bucket).round_again(parameters_[i].slot, parameters_[i].addends, divisor_);
      continue;
    }
    auto sum = at::zeros_like(view(i));
    if (parameters_[i].late.defined()) {
      put(sum, parameters_[i].late);
    }
    all_reduce(sum, reduce_, group_).wait();
    view(i).add_(sum);
  }
}

void Synchronizer::set_gradients(const Uses& uses) {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (uses[i] == 0 && parameters_[i].kept.defined()) {
      view(i).copy_(parameters_[i].kept);
    }
    if (uses[i] != 0 || parameters_[i].kept.defined()) {
      tensor(i).mutable_grad() = view(i);
    }
  }
}

/// Divides parameters into buckets anew when that promises something: in the order that rank 0 saw.
void Synchronizer::learn(const Uses& uses) {
  if (!learner_.pass_over(uses, other_order_)) {
    return;
  }
  auto order = at::empty({static_cast<std::int64_t>(parameters_.size())}, at::kLong);
  auto* const values = order.data_ptr<std::int64_t>();
  std::vector<char> seen(parameters_.size(), 0);
  auto* next = values;
  for (const auto index : order_) {
    *next++ = static_cast<std::int64_t>(index);
    seen[index] = 1;
  }
  for (auto i = parameters_.size(); i-- > 0;) {
    if (seen[i] == 0) {
      *next++ = static_cast<std::int64_t>(i);
    }
  }
  group_.broadcast(order).wait();
  learner_.divided();
  divide({values, values + parameters_.size()});
}

void Synchronizer::divide(const std::vector<std::size_t>& order) {
  const c10::NoGradGuard no_grad;
  const auto sizes = sizes_of(named_);
  std::vector<std::size_t> regular;
  std::vector<std::size_t> aside;
  for (const auto index : order) {
    (learner_.is_aside(index) ? aside : regular).push_back(index);
  }
  const bool shares_memory = group_.engine() == "shm" || group_.engine() == "local";
  const BucketSizes limits{.first = options_.first_bucket_bytes,
                           .others = options_.bucket_bytes,
                           .part_of_rest = shares_memory ? std::size_t{2} : std::size_t{8}};
  auto layouts = lay_out(sizes, regular, limits);
  const auto count = layouts.size();
  for (auto& layout : lay_out(sizes, aside, limits)) {
    layouts.push_back(std::move(layout));
  }
  if (layouts == layouts_) {
    return;
  }
  sums_.clear();
  const auto before = std::exchange(buckets_, {});
  layouts_ = std::move(layouts);
  regular_ = held_ = next_held_ = count;
  journeys_.clear();
  ++generation_;
  for (const auto& layout : layouts_) {
    const auto& bucket = buckets_.emplace_back(layout, named_, group_);
    for (std::size_t slot = 0; slot < bucket.numbers.size(); ++slot) {
      const auto index = bucket.numbers[slot];
      parameters_[index].bucket = buckets_.size() - 1;
      parameters_[index].slot = slot;
      if (auto& gradient = tensor(index).mutable_grad(); gradient.defined() && !before.empty()) {
        put(bucket.views[slot], gradient);
        gradient = bucket.views[slot];
      }
    }
  }
}

}  // namespace tutti::gradient
