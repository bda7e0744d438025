#include "tutti/gradient/synchronizer.h"

#include <algorithm>
#include <numeric>

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include "tutti/comm/work.h"
#include "tutti/gradient/hook.h"

namespace tutti::gradient {
namespace {

using Clock = StepReport::Clock;

std::vector<std::size_t> backwards(std::size_t count) {
  std::vector<std::size_t> order(count);
  std::iota(order.rbegin(), order.rend(), 0);
  return order;
}

/// How long it was under way, by its own account where it has one; else until it was waited for.
Clock::duration duration_of(const Work& work, Clock::duration waited) {
  if (dynamic_cast<const BackendWork*>(work.c10d_work().get()) == nullptr) {
    return waited;
  }
  const std::chrono::duration<double, std::milli> own(work.c10d_work()->getDuration());
  return std::min(waited, std::chrono::duration_cast<Clock::duration>(own));
}

}  // namespace

Synchronizer::Synchronizer(std::vector<NamedTensor> parameters, std::vector<NamedTensor> buffers, Group group,
                           const DataParallelOptions& options)
    : group_(std::move(group)),
      options_(options),
      named_(std::move(parameters)),
      buffers_(std::move(buffers), options.buffers, group_),
      parameters_(named_.size()),
      learner_(named_.size()) {
  divide(backwards(named_.size()));
}

Synchronizer::~Synchronizer() { arrivals_.clear(); }

void Synchronizer::attach() {
  for (std::size_t i = 0; i < named_.size(); ++i) {
    arrivals_.add(tensor(i), i, [self = weak_from_this()](std::size_t index) {
      if (auto alive = self.lock()) {
        alive->arrived(index);
      }
    });
  }
}

void Synchronizer::pause() {
  const std::lock_guard lock(mutex_);
  ++pauses_;
}

void Synchronizer::resume() {
  const std::lock_guard lock(mutex_);
  --pauses_;
}

void Synchronizer::count(double samples) {
  const std::lock_guard lock(mutex_);
  samples_ += samples;
}

std::optional<StepReport> Synchronizer::report() const {
  const std::lock_guard lock(mutex_);
  return last_;
}

const at::Tensor& Synchronizer::view(std::size_t index) const {
  const auto& parameter = parameters_[index];
  return buckets_[parameter.bucket].views[parameter.slot];
}

void Synchronizer::arrived(std::size_t index) {
  const std::lock_guard lock(mutex_);
  if (pass_ == Pass::none || pass_ == Pass::broken) {
    begin_pass();
  }
  auto& parameter = parameters_[index];
  const bool some = tensor(index).grad().defined();
  parameter.touched = parameter.touched || some;
  if (pass_ == Pass::paused) {
    return;
  }
  ++parameter.arrivals;
  auto& bucket = buckets_[parameter.bucket];
  if (parameter.arrivals == parameter.expected && bucket.state == BucketState::filling) {
    order_.push_back(index);
    take_in(index);
    if (--bucket.missing == 0 && parameter.bucket < regular_) {
      bucket.times.ready = Clock::now();
      other_order_ = other_order_ || parameter.bucket != next_;
      launch_full();
    }
  } else if (parameter.arrivals > parameter.expected && some) {
    add_more(index);
  }
}

/// One more gradient for a parameter that was taken for ready.
void Synchronizer::add_more(std::size_t index) {
  const c10::NoGradGuard no_grad;
  auto& parameter = parameters_[index];
  auto& gradient = tensor(index).mutable_grad();
  if (buckets_[parameter.bucket].state == BucketState::filling) {
    view(index).add_(gradient);
  } else {
    parameter.late = parameter.late.defined() ? parameter.late + gradient : gradient;
  }
  gradient.reset();
}

void Synchronizer::begin_pass() {
  if (pass_ == Pass::broken) {
    throw Exception({Code::aborted,
                     "an earlier backward failed after some of its gradients had been sent, so ranks do not agree any "
                     "more on what comes next: start again from a checkpoint"});
  }
  ++passes_;
  pass_ = pauses_ > 0 ? Pass::paused : Pass::synchronizing;
  tell_end_of_backward(weak_from_this());
  if (pass_ == Pass::synchronizing) {
    const double shares[] = {1, static_cast<double>(passes_), samples_};
    begin_synchronizing(shares[static_cast<std::size_t>(options_.mean)]);
  }
}

void Synchronizer::begin_synchronizing(double own_share) {
  current_ = {.step = last_ ? last_->step + 1 : 1, .passes = static_cast<std::uint64_t>(passes_)};
  current_.first_ready = Clock::now();
  next_ = 0;
  order_.clear();
  other_order_ = false;
  for (auto& bucket : buckets_) {
    bucket.empty();
  }
  for (auto& parameter : parameters_) {
    parameter.arrivals = 0;
  }
  agree_on_divisor(own_share);
  if (!all_joined_) {
    buffers_.start(active_.empty() ? Rank{0} : active_.front());
  }
}

/// By what the sum of all ranks' gradients is divided. Where ranks know without asking, nobody asks.
void Synchronizer::agree_on_divisor(double own_share) {
  if (options_.mean == Mean::per_rank && !options_.uneven_data) {
    return;
  }
  auto shares = at::zeros({group_.size() + 1}, at::kDouble);
  auto* const values = shares.data_ptr<double>();
  values[0] = own_share;
  values[1 + to_index(group_.rank())] = passes_ > 0 ? 1 : 0;
  group_.blocking().all_reduce(shares).wait();
  const auto divisor = values[0];
  std::vector<Rank> active;
  for (int rank = 0; rank < group_.size(); ++rank) {
    if (values[1 + rank] != 0) {
      active.push_back(Rank{rank});
    }
  }
  if (!active.empty() && !(divisor > 0)) {
    throw Exception({Code::invalid_argument,
                     "Mean::per_sample: no rank has told how many samples its loss is the mean of; call "
                     "weigh(loss, samples) for every loss"});
  }
  reduce_ = premul_sum(1 / divisor);
  all_joined_ = active.empty();
  if (!all_joined_) {
    active_ = std::move(active);
  }
}

/// A gradient goes into its bucket; until that is reduced, nobody else has it.
void Synchronizer::take_in(std::size_t index) {
  auto& gradient = tensor(index).mutable_grad();
  if (gradient.defined()) {
    put(view(index), gradient);
    gradient.reset();
  } else {
    view(index).zero_();
  }
}

void Synchronizer::launch_full() {
  while (next_ < regular_ && buckets_[next_].missing == 0) {
    launch(buckets_[next_++]);
  }
}

void Synchronizer::launch(Bucket& bucket) {
  bucket.state = BucketState::in_flight;
  bucket.times.started = Clock::now();
  if (options_.hook) {
    bucket.work = options_.hook->reduce({.gradients = bucket.memory,
                                         .parameters = bucket.parameters,
                                         .views = bucket.views,
                                         .index = static_cast<std::size_t>(&bucket - buckets_.data()),
                                         .generation = generation_,
                                         .reduce = reduce_},
                                        group_);
    return;
  }
  bucket.work = all_reduce(bucket.memory, reduce_, group_);
}

void Synchronizer::finish(Bucket& bucket) {
  bucket.work->wait();
  bucket.times.reduced = bucket.times.started + duration_of(*bucket.work, Clock::now() - bucket.times.started);
  bucket.work.reset();
  bucket.state = BucketState::reduced;
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
    parameter.kept = gradient.defined();
    take_in(index);
  }
  if (bucket.missing > 0) {
    bucket.times.ready = Clock::now();
  }
}

void Synchronizer::backward_ended() {
  const std::lock_guard lock(mutex_);
  if (pass_ == Pass::synchronizing) {
    end_pass();
  } else if (pass_ == Pass::paused) {
    pass_ = Pass::none;
  }
}

void Synchronizer::backward_failed() noexcept {
  const std::lock_guard lock(mutex_);
  if (pass_ != Pass::synchronizing) {
    pass_ = pass_ == Pass::paused ? Pass::none : pass_;
    return;
  }
  if (next_ == 0 && options_.mean == Mean::per_rank && !options_.uneven_data) {
    // Nothing was sent: the next backward can take this one's place.
    for (const auto index : order_) {
      tensor(index).mutable_grad() = view(index);
    }
    pass_ = Pass::none;
    --passes_;
    return;
  }
  pass_ = Pass::broken;
  try {
    group_.abort();  // the others hear of it now and not at their deadline
  } catch (const std::exception&) {
    return;  // it is of no use any more as it is
  }
}

Rank Synchronizer::join(const std::function<void()>& after_pass) {
  if (!options_.uneven_data) {
    throw Exception({Code::invalid_argument, "join: ranks have to expect it; set DataParallelOptions::uneven_data"});
  }
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      if (pass_ != Pass::none) {
        throw Exception({Code::invalid_argument, "join: a backward of this rank is under way, or has failed"});
      }
      passes_ = 0;
      samples_ = 0;
      pass_ = Pass::synchronizing;
      begin_synchronizing(0);
      if (all_joined_) {
        pass_ = Pass::none;
        return active_.empty() ? Rank{0} : active_.front();
      }
      end_pass();
    }
    if (after_pass) {
      after_pass();
    } else {
      for (const auto& one : named_) {
        one.tensor.mutable_grad().reset();
      }
    }
  }
}

}  // namespace tutti::gradient
