#include "tutti/optim/master_weights.h"

#include <string>
#include <unordered_set>

#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tutti/optim/fields.h"

namespace tutti {
namespace {

at::Tensor master_of(const at::Tensor& parameter) {
  const auto type = parameter.scalar_type();
  if (!c10::isReducedFloatingType(type) && type != at::kComplexHalf) {
    return parameter;
  }
  return parameter.detach().to(type == at::kComplexHalf ? at::kComplexFloat : at::kFloat).set_requires_grad(true);
}

void clear(at::Tensor& gradient, bool set_to_none) {
  if (set_to_none) {
    gradient.reset();
  } else if (gradient.defined()) {
    gradient.detach_().zero_();
  }
}

}  // namespace

MasterWeights::MasterWeights(const std::vector<at::Tensor>& parameters) {
  std::unordered_set<const void*> seen;
  for (const auto& parameter : parameters) {
    if (parameter.defined() && parameter.requires_grad() && seen.insert(parameter.unsafeGetTensorImpl()).second) {
      model_.push_back(parameter);
      masters_.push_back(master_of(parameter));
    }
  }
}

const at::Tensor& MasterWeights::of(const at::Tensor& parameter) const {
  for (std::size_t number = 0; number < model_.size(); ++number) {
    if (model_[number].is_same(parameter)) {
      return masters_[number];
    }
  }
  throw Exception({Code::invalid_argument,
                   "MasterWeights: asked for the master of a tensor that is none of the parameters it was made for, or "
                   "was not trained then"});
}

void MasterWeights::take_gradients() {
  const c10::NoGradGuard no_grad;
  for (std::size_t number = 0; number < model_.size(); ++number) {
    if (!is_copy(number)) {
      continue;
    }
    const auto& gradient = model_[number].grad();
    auto& own = masters_[number].mutable_grad();
    if (!gradient.defined()) {
      own.reset();
    } else if (own.defined() && !own.is_sparse() && !gradient.is_sparse()) {
      own.copy_(gradient);
    } else {
      own = gradient.detach().to(masters_[number].scalar_type(), /*non_blocking=*/false, /*copy=*/true);
    }
  }
}

void MasterWeights::give_weights() {
  const c10::NoGradGuard no_grad;
  for (std::size_t number = 0; number < model_.size(); ++number) {
    if (is_copy(number)) {
      model_[number].copy_(masters_[number]);
    }
  }
}

at::Tensor MasterWeights::step(torch::optim::Optimizer& optimizer,
                               const torch::optim::Optimizer::LossClosure& closure) {
  at::Tensor loss;
  if (closure) {
    loss = optimizer.step([&] {
      give_weights();
      auto value = closure();
      take_gradients();
      return value;
    });
  } else {
    take_gradients();
    loss = optimizer.step();
  }
  give_weights();
  return loss;
}

bool MasterWeights::step(torch::optim::Optimizer& optimizer, LossScale& scale) {
  take_gradients();
  const bool take = scale.unscale(masters_);
  if (take) {
    optimizer.step();
    give_weights();
  }
  return take;
}

void MasterWeights::zero_grad(bool set_to_none) {
  for (std::size_t number = 0; number < model_.size(); ++number) {
    clear(model_[number].mutable_grad(), set_to_none);
    clear(masters_[number].mutable_grad(), set_to_none);
  }
}

void MasterWeights::reload() {
  const c10::NoGradGuard no_grad;
  for (std::size_t number = 0; number < model_.size(); ++number) {
    if (is_copy(number)) {
      masters_[number].copy_(model_[number]);
    }
  }
}

void MasterWeights::save(torch::serialize::OutputArchive& archive) const {
  const optim::FieldWriter write{archive};
  write("size", static_cast<std::int64_t>(masters_.size()));
  for (std::size_t number = 0; number < masters_.size(); ++number) {
    if (is_copy(number)) {
      write(std::to_string(number), masters_[number].detach());
    }
  }
}

void MasterWeights::load(torch::serialize::InputArchive& archive) {
  const c10::NoGradGuard no_grad;
  const optim::FieldReader read{archive};
  std::int64_t size = 0;
  read("size", size);
  if (size != static_cast<std::int64_t>(masters_.size())) {
    throw Exception({Code::mismatch, fmt::format("MasterWeights: {} parameters were saved, and there are {}: the model "
                                                 "is another one",
                                                 size, masters_.size())});
  }
  std::vector<at::Tensor> saved(masters_.size());
  for (std::size_t number = 0; number < masters_.size(); ++number) {
    const bool there = archive.try_read(std::to_string(number), saved[number], /*is_buffer=*/true);
    if (there != is_copy(number) || (there && saved[number].sizes() != masters_[number].sizes())) {
      throw Exception(
          {Code::mismatch,
           fmt::format("MasterWeights: parameter {} was saved with another shape or type than [{}] now: the "
                       "model is another one",
                       number, fmt::join(masters_[number].sizes(), ", "))});
    }
  }
  for (std::size_t number = 0; number < masters_.size(); ++number) {
    if (is_copy(number)) {
      masters_[number].copy_(saved[number]);
    }
  }
  give_weights();
}

}  // namespace tutti
