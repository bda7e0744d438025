#include "tutti/gradient/noise_scale.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

namespace tutti {
namespace {

double squared_length(const at::Tensor& values) {
  const c10::NoGradGuard no_grad;
  const auto length = at::linalg_vector_norm(values).item<double>();
  return length * length;
}

/// What a rank's gradient is multiplied with, so that the ranks' mean is what reduction gives.
double factor_of(const Reduce& reduce, int ranks) {
  return reduce.op == ReduceOp::premul_sum ? reduce.factor * ranks : 1;
}

}  // namespace

struct NoiseScale::Step {
  int ranks = 1;
  std::size_t under_way = 0;
  double of_ranks = 0;  // squared lengths, averaged
  double of_all = 0;    // that of the average
};

NoiseScale::NoiseScale(double samples_of_a_rank, std::shared_ptr<Hook> inner, double forget)
    : samples_(samples_of_a_rank), inner_(std::move(inner)), forget_(forget) {
  if (!(samples_ > 0) || !(forget_ > 0 && forget_ <= 1) || !inner_) {
    throw Exception({Code::invalid_argument,
                     "NoiseScale: it takes a number of samples above zero, an inner hook, and a part to forget that is "
                     "above 0 and at most 1"});
  }
}

Work NoiseScale::reduce(const FullBucket& bucket, const Group& group) {
  if (group.size() == 1) {
    return inner_->reduce(bucket, group);
  }
  if (bucket.index == 0 || !step_) {
    if (step_ && step_->under_way == 0) {
      sums_ = with(*step_);
    }
    step_ = std::make_shared<Step>();
    step_->ranks = group.size();
  }
  const auto factor = factor_of(bucket.reduce, group.size());
  auto own = at::full({1}, squared_length(bucket.gradients) * factor * factor, at::kDouble);
  auto told = all_reduce(own, ReduceOp::avg, group);
  auto work = inner_->reduce(bucket, group);
  ++step_->under_way;
  return then(std::move(work), [step = step_, told, own, gradients = bucket.gradients]() mutable {
    told.wait();
    step->of_ranks += own.item<double>();
    step->of_all += squared_length(gradients);
    --step->under_way;
  });
}

/// Two equations: the squared length of a mean of n samples is that of the true gradient, and noise / n more.
NoiseScale::Sums NoiseScale::with(const Step& step) const {
  const auto few = samples_;
  const auto many = samples_ * step.ranks;
  const auto gradient = (many * step.of_all - few * step.of_ranks) / (many - few);
  const auto noise = (step.of_ranks - step.of_all) / (1 / few - 1 / many);
  return {.gradient = sums_.gradient + forget_ * (gradient - sums_.gradient),
          .noise = sums_.noise + forget_ * (noise - sums_.noise),
          .weight = sums_.weight + forget_ * (1 - sums_.weight),
          .steps = sums_.steps + 1};
}

std::optional<NoiseScale::Estimate> NoiseScale::estimate() const {
  // The last step is over, though only the beginning of the next one tells.
  const auto sums = step_ && step_->under_way == 0 ? with(*step_) : sums_;
  if (sums.steps == 0 || sums.gradient <= 0) {
    return std::nullopt;
  }
  return Estimate{.gradient = sums.gradient / sums.weight,
                  .noise = sums.noise / sums.weight,
                  .samples = sums.noise / sums.gradient,
                  .steps = sums.steps};
}

void NoiseScale::save(torch::serialize::OutputArchive& archive) const {
  const auto sums = step_ && step_->under_way == 0 ? with(*step_) : sums_;
  archive.write("noise_scale",
                at::tensor({sums.gradient, sums.noise, sums.weight, static_cast<double>(sums.steps)}, at::kDouble));
  inner_->save(archive);
}

void NoiseScale::load(torch::serialize::InputArchive& archive) {
  at::Tensor values;
  archive.read("noise_scale", values);
  const auto* const numbers = values.data_ptr<double>();
  sums_ = {numbers[0], numbers[1], numbers[2], static_cast<std::uint64_t>(numbers[3])};
  step_.reset();
  inner_->load(archive);
}

}  // namespace tutti
