#include "tutti/optim/lamb.h"

#include <cmath>
#include <memory>

#include <ATen/ops/zeros_like.h>
#include <torch/optim/serialize.h>

#include "tutti/optim/fields.h"

namespace tutti {
namespace {

constexpr auto kName = "Lamb";

template <class Options, class Visit>
void each_field(Options& options, const Visit& visit) {
  visit("lr", options.lr());
  visit("betas", options.betas());
  visit("eps", options.eps());
  visit("weight_decay", options.weight_decay());
  visit("bias_correction", options.bias_correction());
  visit("min_trust", options.min_trust());
  visit("max_trust", options.max_trust());
  visit("adapt", options.adapt());
  visit("decay", options.decay());
}

template <class State, class Visit>
void each_field_of_state(State& state, const Visit& visit) {
  visit("step", state.step());
  visit("exp_avg", state.exp_avg());
  visit("exp_avg_sq", state.exp_avg_sq());
}

void check(const torch::optim::OptimizerOptions& group_options) {
  using optim::check_option;
  const auto* const own = dynamic_cast<const LambOptions*>(&group_options);
  check_option(own != nullptr, kName, "a group has the options of another optimizer");
  const auto& options = *own;
  check_option(options.lr() >= 0, kName, "lr must not be negative");
  for (const double beta : {std::get<0>(options.betas()), std::get<1>(options.betas())}) {
    check_option(beta >= 0 && beta < 1, kName, "betas must be at least 0, and less than 1");
  }
  check_option(options.eps() >= 0, kName, "eps must not be negative");
  check_option(options.weight_decay() >= 0, kName, "weight_decay must not be negative");
  check_option(options.min_trust() >= 0 && options.min_trust() <= options.max_trust(), kName,
               "min_trust must be from 0 to max_trust");
}

std::unique_ptr<LambParamState> first_state(const at::Tensor& weights) {
  auto state = std::make_unique<LambParamState>();
  state->exp_avg(at::zeros_like(weights));
  state->exp_avg_sq(at::zeros_like(weights));
  return state;
}

/// What an average that began at zero has seen, of 1.
double seen(double beta, const LambParamState& state, const LambOptions& options) {
  return options.bias_correction() ? 1 - std::pow(beta, state.step()) : 1;
}

}  // namespace

void LambOptions::serialize(torch::serialize::OutputArchive& archive) const {
  each_field(*this, optim::FieldWriter{archive});
}

void LambOptions::serialize(torch::serialize::InputArchive& archive) { each_field(*this, optim::FieldReader{archive}); }

void LambParamState::serialize(torch::serialize::OutputArchive& archive) const {
  each_field_of_state(*this, optim::FieldWriter{archive});
}

void LambParamState::serialize(torch::serialize::InputArchive& archive) {
  each_field_of_state(*this, optim::FieldReader{archive});
}

Lamb::Lamb(const std::vector<torch::optim::OptimizerParamGroup>& groups, const LambOptions& defaults)
    : LayerwiseOptimizer({kName, check}, groups, std::make_unique<LambOptions>(defaults)) {}

void Lamb::update(const at::Tensor& parameter, const torch::optim::OptimizerOptions& group_options) {
  const auto& options = static_cast<const LambOptions&>(group_options);
  const auto weights = optim::as_real(parameter);
  const auto gradient = optim::as_real(parameter.grad().resolve_conj());
  auto& slot = state_[parameter.unsafeGetTensorImpl()];
  if (!slot) {
    slot = first_state(weights);
  }
  auto& state = static_cast<LambParamState&>(*slot);
  state.step(state.step() + 1);
  const auto [beta1, beta2] = options.betas();
  state.exp_avg().mul_(beta1).add_(gradient, 1 - beta1);
  state.exp_avg_sq().mul_(beta2).addcmul_(gradient, gradient, 1 - beta2);

  const auto spread = state.exp_avg_sq().sqrt().div_(std::sqrt(seen(beta2, state, options))).add_(options.eps());
  const auto step = state.exp_avg().div(spread).div_(seen(beta1, state, options));
  if (optim::includes(options.decay(), parameter) && options.weight_decay() != 0) {
    step.add_(weights, options.weight_decay());
  }
  double trust = 1;
  if (optim::includes(options.adapt(), parameter)) {
    trust =
        optim::trust_ratio(optim::norm_of(weights), optim::norm_of(step), {options.min_trust(), options.max_trust()});
  }
  weights.add_(step, -options.lr() * trust);
}

void Lamb::save(torch::serialize::OutputArchive& archive) const {
  torch::optim::serialize<LambParamState, LambOptions>(archive, *this);
}

void Lamb::load(torch::serialize::InputArchive& archive) {
  torch::optim::serialize<LambParamState, LambOptions>(archive, *this);
}

}  // namespace tutti
