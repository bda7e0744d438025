#include "tutti/optim/layerwise.h"

#include <algorithm>
#include <utility>

#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/view_as_real.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include "tutti/comm/exception.h"

namespace tutti::optim {
namespace {

void refuse_sparse(const std::vector<torch::optim::OptimizerParamGroup>& groups, std::string_view optimizer) {
  for (std::size_t group = 0; group < groups.size(); ++group) {
    const auto& parameters = groups[group].params();
    for (std::size_t number = 0; number < parameters.size(); ++number) {
      const auto& gradient = parameters[number].grad();
      if (gradient.defined() && gradient.layout() != at::kStrided) {
        throw Exception(
            {Code::unsupported,
             fmt::format("{}: parameter {} of group {} has a sparse gradient, and steps of whole layers "
                         "need dense ones; give it to another optimizer, as SGD, or make its gradient dense",
                         optimizer, number, group)});
      }
    }
  }
}

}  // namespace

bool includes(Parameters some, const at::Tensor& parameter) {
  return some == Parameters::all || (some == Parameters::matrices && parameter.dim() >= 2);
}

double trust_ratio(double weights, double step, const TrustBounds& bounds) {
  return weights == 0 || step == 0 ? 1 : std::clamp(weights / step, bounds.smallest, bounds.largest);
}

double norm_of(const at::Tensor& tensor) {
  const auto type = tensor.scalar_type();
  const auto sum = c10::isReducedFloatingType(type) ? at::kFloat : type;
  return at::linalg_vector_norm(tensor, 2, std::nullopt, false, sum).item<double>();
}

at::Tensor as_real(const at::Tensor& tensor) { return tensor.is_complex() ? at::view_as_real(tensor) : tensor; }

void check_option(bool condition, std::string_view optimizer, std::string_view sentence) {
  if (!condition) {
    throw Exception({Code::invalid_argument, fmt::format("{}: {}", optimizer, sentence)});
  }
}

LayerwiseOptimizer::LayerwiseOptimizer(const OptimizerKind& kind,
                                       const std::vector<torch::optim::OptimizerParamGroup>& groups,
                                       std::unique_ptr<torch::optim::OptimizerOptions> defaults)
    : Optimizer(std::vector<torch::optim::OptimizerParamGroup>{}, std::move(defaults)), kind_(kind) {
  kind_.check(*defaults_);
  for (const auto& group : groups) {
    add_param_group(group);
  }
}

void LayerwiseOptimizer::add_param_group(const torch::optim::OptimizerParamGroup& group) {
  if (group.has_options()) {
    kind_.check(group.options());
  }
  Optimizer::add_param_group(group);
  if (group.has_options()) {
    param_groups_.back().set_options(group.options().clone());
  }
}

at::Tensor LayerwiseOptimizer::step(LossClosure closure) {
  at::Tensor loss;
  if (closure) {
    const c10::AutoGradMode with_gradients(true);
    loss = closure();
  }
  const c10::NoGradGuard no_grad;
  refuse_sparse(param_groups_, kind_.name);
  for (const auto& group : param_groups_) {
    for (const auto& parameter : group.params()) {
      if (parameter.grad().defined()) {
        update(parameter, group.options());
      }
    }
  }
  return loss;
}

}  // namespace tutti::optim
