#include "tutti/optim/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "tutti/optim/layerwise.h"

namespace tutti {
namespace {

void check(bool condition, std::string_view sentence) { optim::check_option(condition, "LearningRate", sentence); }

void check(const LearningRate& rate) {
  check(rate.base_rate > 0 && std::isfinite(rate.base_rate), "base_rate must be given, and more than 0");
  check(rate.base_batch > 0 && rate.batch > 0, "base_batch and batch must be at least 1");
  check(rate.warmup_steps >= 0, "warmup_steps must not be negative");
  check(!rate.warmup_from || (*rate.warmup_from >= 0 && *rate.warmup_from <= 1),
        "warmup_from is a part of the peak, from 0 to 1");
  check(rate.decay == Decay::none || rate.steps > rate.warmup_steps,
        "decay needs steps, the number of all steps, to be more than warmup_steps");
  check(rate.floor >= 0, "floor must not be negative");
}

double factor_of(const LearningRate& rate) {
  const double times = static_cast<double>(rate.batch) / static_cast<double>(rate.base_batch);
  switch (rate.scaling) {
    case BatchScaling::none: return 1;
    case BatchScaling::linear: return times;
    case BatchScaling::square_root: return std::sqrt(times);
  }
  return 1;
}

/// How much of the way from peak to floor is left, after a part of the time.
double left_after(double part, Decay decay) {
  switch (decay) {
    case Decay::none: return 1;
    case Decay::linear: return 1 - part;
    case Decay::cosine: return (1 + std::cos(std::numbers::pi * part)) / 2;
  }
  return 1;
}

}  // namespace

double LearningRate::peak() const {
  check(*this);
  return base_rate * factor_of(*this);
}

double LearningRate::at(std::int64_t step) const {
  const double top = peak();
  check(step >= 0, "steps are numbered from 0");
  if (step < warmup_steps) {
    const double from = warmup_from ? *warmup_from * top : std::min(base_rate, top);
    const double part = static_cast<double>(step + 1) / static_cast<double>(warmup_steps);
    return from + (top - from) * part;
  }
  if (decay == Decay::none || floor >= top) {
    return top;
  }
  const double part = static_cast<double>(step - warmup_steps) / static_cast<double>(steps - warmup_steps);
  return part < 1 ? floor + (top - floor) * left_after(part, decay) : floor;
}

LearningRateSchedule::LearningRateSchedule(const LearningRate& rate, const torch::optim::Optimizer& optimizer)
    : rate_(rate) {
  check(rate_);
  learn_ratios(optimizer);
}

void LearningRateSchedule::apply(torch::optim::Optimizer& optimizer, std::int64_t step) {
  learn_ratios(optimizer);
  check(optimizer.param_groups().size() == ratios_.size(),
        "this optimizer has fewer groups than the one it was made for");
  const double now = rate_.at(step);
  for (std::size_t group = 0; group < ratios_.size(); ++group) {
    optimizer.param_groups()[group].options().set_lr(now * ratios_[group]);
  }
}

void LearningRateSchedule::learn_ratios(const torch::optim::Optimizer& optimizer) {
  const auto& groups = optimizer.param_groups();
  for (std::size_t group = ratios_.size(); group < groups.size(); ++group) {
    ratios_.push_back(groups[group].options().get_lr() / rate_.base_rate);
  }
}

}  // namespace tutti
