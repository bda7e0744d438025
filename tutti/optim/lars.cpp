#include "tutti/optim/lars.h"

#include <memory>

#include <torch/optim/serialize.h>

#include "tutti/optim/fields.h"

namespace tutti {
namespace {

constexpr auto kName = "Lars";

template <class Options, class Visit>
void each_field(Options& options, const Visit& visit) {
  visit("lr", options.lr());
  visit("momentum", options.momentum());
  visit("nesterov", options.nesterov());
  visit("weight_decay", options.weight_decay());
  visit("trust_coefficient", options.trust_coefficient());
  visit("min_trust", options.min_trust());
  visit("max_trust", options.max_trust());
  visit("adapt", options.adapt());
  visit("decay", options.decay());
}

void check(const torch::optim::OptimizerOptions& group_options) {
  using optim::check_option;
  const auto* const own = dynamic_cast<const LarsOptions*>(&group_options);
  check_option(own != nullptr, kName, "a group has the options of another optimizer");
  const auto& options = *own;
  check_option(options.lr() >= 0, kName, "lr must not be negative");
  check_option(options.momentum() >= 0, kName, "momentum must not be negative");
  check_option(!options.nesterov() || options.momentum() > 0, kName, "nesterov needs momentum");
  check_option(options.weight_decay() >= 0, kName, "weight_decay must not be negative");
  check_option(options.trust_coefficient() > 0, kName, "trust_coefficient must be more than 0");
  check_option(options.min_trust() >= 0 && options.min_trust() <= options.max_trust(), kName,
               "min_trust must be from 0 to max_trust");
}

}  // namespace

void LarsOptions::serialize(torch::serialize::OutputArchive& archive) const {
  each_field(*this, optim::FieldWriter{archive});
}

void LarsOptions::serialize(torch::serialize::InputArchive& archive) { each_field(*this, optim::FieldReader{archive}); }

void LarsParamState::serialize(torch::serialize::OutputArchive& archive) const {
  optim::FieldWriter{archive}("momentum_buffer", momentum_buffer());
}

void LarsParamState::serialize(torch::serialize::InputArchive& archive) {
  optim::FieldReader{archive}("momentum_buffer", momentum_buffer());
}

Lars::Lars(const std::vector<torch::optim::OptimizerParamGroup>& groups, const LarsOptions& defaults)
    : LayerwiseOptimizer({kName, check}, groups, std::make_unique<LarsOptions>(defaults)) {}

void Lars::update(const at::Tensor& parameter, const torch::optim::OptimizerOptions& group_options) {
  const auto& options = static_cast<const LarsOptions&>(group_options);
  const auto weights = optim::as_real(parameter);
  auto step = optim::as_real(parameter.grad().resolve_conj());
  const double decay = optim::includes(options.decay(), parameter) ? options.weight_decay() : 0;
  double trust = 1;
  if (optim::includes(options.adapt(), parameter)) {
    const double size = optim::norm_of(weights);
    trust = optim::trust_ratio(options.trust_coefficient() * size, optim::norm_of(step) + decay * size,
                               {options.min_trust(), options.max_trust()});
  }
  if (decay != 0) {
    step = step.add(weights, decay);
  }
  if (options.momentum() == 0) {
    weights.add_(step, -options.lr() * trust);
    return;
  }
  auto& slot = state_[parameter.unsafeGetTensorImpl()];
  if (!slot) {
    auto first = std::make_unique<LarsParamState>();
    first->momentum_buffer(step.mul(trust));
    slot = std::move(first);
  } else {
    static_cast<LarsParamState&>(*slot).momentum_buffer().mul_(options.momentum()).add_(step, trust);
  }
  const auto& velocity = static_cast<LarsParamState&>(*slot).momentum_buffer();
  weights.add_(options.nesterov() ? step.mul(trust).add_(velocity, options.momentum()) : velocity, -options.lr());
}

void Lars::save(torch::serialize::OutputArchive& archive) const {
  torch::optim::serialize<LarsParamState, LarsOptions>(archive, *this);
}

void Lars::load(torch::serialize::InputArchive& archive) {
  torch::optim::serialize<LarsParamState, LarsOptions>(archive, *this);
}

}  // namespace tutti
