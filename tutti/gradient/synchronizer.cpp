#include "tutti/gradient/synchronizer.h"

#include <algorithm>
#include <numeric>

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include "tutti/base/environment.h"
#include "tutti/gradient/hook.h"

namespace tutti::gradient {
namespace {

using Clock = StepReport::Clock;

std::vector<std::size_t> backwards(std::size_t count) {
  std::vector<std::size_t> order(count);
  std::iota(order.rbegin(), order.rend(), 0);
  return order;
}

std::string log_level() {
  const auto environment = read_environment();
  return environment ? environment.value().log_level : "warning";
}

std::vector<std::size_t> bytes_of(const std::vector<NamedTensor>& tensors) {
  std::vector<std::size_t> bytes;
  for (const auto& one : tensors) {
    bytes.push_back(one.tensor.is_cpu() ? one.tensor.nbytes() : 0);
  }
  return bytes;
}

}  // namespace

Synchronizer::Synchronizer(std::vector<NamedTensor> parameters, std::vector<NamedTensor> buffers, Group group,
                           const DataParallelOptions& options)
    : group_(std::move(group)),
      options_(options),
      named_(std::move(parameters)),
      log_(make_log("tutti", log_level())),
      buffers_(std::move(buffers), options.buffers, group_),
      parameters_(named_.size()),
      learner_(named_.size()),
      foresight_(bytes_of(named_)),
      divisor_(group_.size()) {
  if (is_exact() && options.hook) {
    throw Exception({Code::invalid_argument,
                     "DataParallel: a hook cannot stand between gradients and a reproducible sum; use one of the two"});
  }
  if (is_exact() && group_.shape().empty()) {
    throw Exception({Code::invalid_argument,
                     fmt::format("DataParallel: a group of backend '{}' has no reproducible sums", group_.engine())});
  }
  divide(backwards(named_.size()));
  if (options_.hook) {
    options_.hook->claim(this);
  }
}

Synchronizer::~Synchronizer() {
  arrivals_.clear();
  stop_all_watching();
  if (options_.hook) {
    options_.hook->release();
  }
}

void Synchronizer::attach() {
  for (std::size_t i = 0; i < named_.size(); ++i) {
    arrivals_.add(tensor(i), i, weak_from_this());
  }
  if (lends()) {
    prepare_lending();
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

void Synchronizer::arrived(std::size_t index, const at::Tensor& incoming) {
  if (lends()) {
    stop_lending();  // what is needed in here is not for gradients
  }
  const std::lock_guard lock(mutex_);
  take_arrived(index, incoming);
  if (lends() && pass_ == Pass::synchronizing) {
    start_lending(weak_from_this());
  }
}

void Synchronizer::take_arrived(std::size_t index, const at::Tensor& incoming) {
  if (pass_ != Pass::paused && pass_ != Pass::synchronizing) {
    begin_pass();
  }
  auto& parameter = parameters_[index];
  const bool some = tensor(index).grad().defined();
  parameter.touched = parameter.touched || some;
  if (is_exact() && some) {
    keep_addend(index);
  }
  if (pass_ == Pass::paused) {
    return;
  }
  ++parameter.arrivals;
  if (lends()) {
    const auto& gradient = tensor(index).grad();
    const bool plain = some && gradient.is_cpu() && gradient.layout() == at::kStrided;
    foresight_.arrived(index, plain ? gradient.const_data_ptr() : nullptr);
  }
  auto& bucket = buckets_[parameter.bucket];
  if (parameter.arrivals == parameter.expected && bucket.state == BucketState::filling) {
    order_.push_back(index);
    take_in(index, incoming);
    if (--bucket.missing == 0 && parameter.bucket < regular_) {
      bucket.times.ready = Clock::now();
      other_order_ = other_order_ || parameter.bucket != filled_;
      ++filled_;
      launch_full();
    }
  } else if (parameter.arrivals > parameter.expected && some && !is_exact()) {
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
  settle_locked();
  if (pass_ == Pass::broken) {
    throw Exception({Code::aborted,
                     "an earlier backward failed after some of its gradients had been sent, so ranks do not agree any "
                     "more on what comes next: start again from a checkpoint"});
  }
  ++passes_;
  pass_ = pauses_ > 0 ? Pass::paused : Pass::synchronizing;
  tell_end_of_backward(weak_from_this());
  if (pass_ == Pass::synchronizing) {
    begin_synchronizing(1);
  }
}

/// What this rank's gradients count in the mean.
double Synchronizer::own_share() const {
  const double shares[] = {passes_ == 0 ? 0.0 : 1.0, static_cast<double>(passes_), samples_};
  return shares[static_cast<std::size_t>(options_.mean)];
}

/// `own`: how many of this rank's passes are not paused ones, 1 or 0.
void Synchronizer::begin_synchronizing(std::int32_t own) {
  current_ = {.step = last_ ? last_->step + 1 : 1, .passes = static_cast<std::uint64_t>(passes_)};
  current_.first_ready = Clock::now();
  if (const auto uses = std::exchange(to_learn_, {})) {
    note_set_by_hand();  // before buckets are others
    learn(*uses);
  }
  held_ = std::min(next_held_, regular_);
  next_ = 0;
  filled_ = 0;
  timed_ = true;
  foresight_.begin_pass();
  order_.clear();
  other_order_ = false;
  for (auto& bucket : buckets_) {
    bucket.empty();
  }
  for (auto& parameter : parameters_) {
    parameter.arrivals = 0;
  }
  const bool none_paused = agree_on_divisor(passes_ > own);
  as_sums_ = is_exact() && !(none_paused && divisor_ == group_.size());
  if (!all_joined_) {
    buffers_.start(active_.empty() ? Rank{0} : active_.front());
  }
}

/// Gradients that lie elsewhere than in their bucket count as this pass's.
void Synchronizer::note_set_by_hand() {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const auto& gradient = tensor(i).grad();
    const bool own = gradient.defined() && !gradient.is_sparse() && gradient.data_ptr() == view(i).data_ptr();
    parameters_[i].touched = parameters_[i].touched || (gradient.defined() && !own);
  }
}

/// By what the sum of all ranks' gradients is divided. Where ranks know without asking, nobody asks. Gives whether no
/// rank has paused passes.
bool Synchronizer::agree_on_divisor(bool paused) {
  if (options_.mean == Mean::per_rank && !options_.uneven_data) {
    return !paused;
  }
  auto shares = at::zeros({group_.size() + 2}, at::kDouble);
  auto* const values = shares.data_ptr<double>();
  values[0] = own_share();
  values[1 + to_index(group_.rank())] = passes_;
  auto& some_paused = values[1 + group_.size()];
  some_paused = paused ? 1 : 0;
  group_.blocking().all_reduce(shares).wait();
  divisor_ = values[0];
  std::vector<Rank> active;
  for (int rank = 0; rank < group_.size(); ++rank) {
    if (values[1 + rank] != 0) {
      active.push_back(Rank{rank});
    }
  }
  if (!active.empty() && !(divisor_ > 0)) {
    throw Exception({Code::invalid_argument,
                     "Mean::per_sample: no rank has told how many samples its loss is the mean of; call "
                     "weigh(loss, samples) for every loss"});
  }
  reduce_ = premul_sum(1 / divisor_);
  all_joined_ = active.empty();
  if (!all_joined_) {
    active_ = std::move(active);
  }
  return some_paused == 0;
}

/// A gradient goes into its bucket; until that is reduced, nobody else has it.
void Synchronizer::take_in(std::size_t index, const at::Tensor& incoming) {
  if (as_sums_) {
    return;
  }
  auto& addends = parameters_[index].addends;
  auto& gradient = addends.empty() ? tensor(index).mutable_grad() : addends.front();
  const bool some = gradient.defined();
  auto& bucket = buckets_[parameters_[index].bucket];
  const auto slot = parameters_[index].slot;
  const bool there = some && bucket.has(slot, gradient);
  if (there) {
    tensor(index).mutable_grad().reset();
  }
  const bool stays = !lends() || reclaim(index, incoming);
  if (there && stays) {
    current_.in_place += view(index).nbytes();
  }
  if (some && !there) {
    bucket.put(slot, gradient);
    tensor(index).mutable_grad().reset();
  } else if (!some) {
    view(index).zero_();
  }
}

void Synchronizer::backward_ended() {
  stop_lending();
  const std::lock_guard lock(mutex_);
  if (pass_ == Pass::synchronizing) {
    end_pass();
  } else if (pass_ == Pass::paused) {
    pass_ = Pass::none;
  }
}

void Synchronizer::backward_failed() noexcept {
  stop_lending();
  const std::lock_guard lock(mutex_);
  if (pass_ == Pass::none || pass_ == Pass::open || pass_ == Pass::broken) {
    return;
  }
  if (pass_ == Pass::paused && !is_exact()) {
    pass_ = Pass::none;
    return;
  }
  if (next_ == 0 && options_.mean == Mean::per_rank && !options_.uneven_data && !is_exact()) {
    // Nothing was sent: the next backward can take this one's place.
    for (const auto index : order_) {
      tensor(index).mutable_grad() = view(index);
    }
    pass_ = Pass::none;
    --passes_;
    return;
  }
  pass_ = Pass::broken;
  abort_group();
}

/// The others hear of it now, and not at their deadline.
void Synchronizer::abort_group() noexcept {
  try {
    group_.abort();
  } catch (const std::exception&) {
    return;  // it is of no use any more as it is
  }
}

Rank Synchronizer::join(const std::function<void()>& after_pass) {
  stop_lending();
  if (!options_.uneven_data) {
    throw Exception({Code::invalid_argument, "join: ranks have to expect it; set DataParallelOptions::uneven_data"});
  }
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      settle_locked();
      if (pass_ != Pass::none) {
        throw Exception({Code::invalid_argument, "join: a backward of this rank is under way, or has failed"});
      }
      samples_ = passes_ == 0 ? 0 : samples_;
      pass_ = Pass::synchronizing;
      begin_synchronizing(0);  // with what paused passes have left, if anything
      if (all_joined_) {
        pass_ = Pass::none;
        return active_.empty() ? Rank{0} : active_.front();
      }
      end_pass();
      settle_locked();
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
