#include "tutti/optim/loss_scale.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <ATen/ops/full.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include "tutti/optim/fields.h"
#include "tutti/optim/layerwise.h"

namespace tutti {
namespace {

void check(const LossScaleOptions& options) {
  const auto check = [](bool condition, std::string_view sentence) {
    optim::check_option(condition, "LossScale", sentence);
  };
  check(options.smallest > 0 && options.smallest <= options.initial && options.initial <= options.largest,
        "initial must be from smallest to largest, and those more than 0");
  check(options.largest <= std::numeric_limits<float>::max(), "largest must be a float32");
  check(options.growth >= 1, "growth must be at least 1");
  check(options.backoff > 0 && options.backoff < 1, "backoff must be more than 0 and less than 1");
  check(options.growth_interval > 0 && options.patience > 0, "growth_interval and patience must be at least 1");
}

/// Their largest absolute value tells, without memory for an answer by element.
bool all_finite(const at::Tensor& values) {
  if (values.numel() == 0) {
    return true;
  }
  const auto real = optim::as_real(values.resolve_conj());
  return std::isfinite(at::linalg_vector_norm(real, std::numeric_limits<double>::infinity()).item<double>());
}

}  // namespace

LossScale::LossScale(std::optional<Group> group, const LossScaleOptions& options)
    : group_(std::move(group)), options_(options), scale_(options.initial) {
  check(options_);
}

at::Tensor LossScale::scale(const at::Tensor& loss) const {
  return (c10::isReducedFloatingType(loss.scalar_type()) ? loss.to(at::kFloat) : loss) * scale_;
}

bool LossScale::unscale(const std::vector<at::Tensor>& parameters) {
  const c10::NoGradGuard no_grad;
  bool finite = true;
  for (const auto& parameter : parameters) {
    const auto& gradient = parameter.grad();
    if (gradient.defined()) {
      auto values = gradient.is_sparse() ? gradient._values() : gradient;
      values.div_(scale_);
      finite = finite && all_finite(values);
    }
  }
  finite = finite_everywhere(finite, parameters.empty() ? at::Device(at::kCPU) : parameters.front().device());
  adjust(finite);
  return finite;
}

bool LossScale::step(torch::optim::Optimizer& optimizer) {
  std::vector<at::Tensor> parameters;
  for (const auto& group : optimizer.param_groups()) {
    parameters.insert(parameters.end(), group.params().begin(), group.params().end());
  }
  const bool take = unscale(parameters);
  if (take) {
    optimizer.step();
  }
  return take;
}

bool LossScale::finite_everywhere(bool finite_here, const at::Device& device) const {
  if (!group_) {
    return finite_here;
  }
  const auto overflown = at::full({1}, finite_here ? 0 : 1, at::TensorOptions(at::kInt).device(device));
  group_->blocking().all_reduce(overflown, ReduceOp::max).wait();
  return overflown.item<int>() == 0;
}

void LossScale::adjust(bool taken) {
  if (taken) {
    skipped_ = 0;
    if (++taken_ == options_.growth_interval) {
      taken_ = 0;
      scale_ = std::min(scale_ * options_.growth, options_.largest);
    }
    return;
  }
  taken_ = 0;
  scale_ = std::max(scale_ * options_.backoff, options_.smallest);
  if (++skipped_ >= options_.patience) {
    throw Exception(
        {Code::aborted,
         fmt::format("LossScale: gradients were not finite in {} steps in a row, down to a scale of {}: the "
                     "model or its data is at fault; look for the first loss that is not a number",
                     skipped_, scale_)});
  }
}

void LossScale::save(torch::serialize::OutputArchive& archive) const {
  const optim::FieldWriter write{archive};
  write("scale", scale_);
  write("taken", taken_);
  write("skipped", skipped_);
}

void LossScale::load(torch::serialize::InputArchive& archive) {
  const optim::FieldReader read{archive};
  read("scale", scale_);
  read("taken", taken_);
  read("skipped", skipped_);
}

}  // namespace tutti
