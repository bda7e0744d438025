#include "tutti/verify/verify.h"

#include <algorithm>
#include <cmath>

#include <ATen/ops/max.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>

#include "tutti/base/environment.h"
#include "tutti/verify/division.h"
#include "tutti/verify/exchange.h"
#include "tutti/verify/reference.h"
#include "tutti/verify/state_watch.h"
#include "tutti/verify/step_check.h"
#include "tutti/verify/words.h"

namespace tutti {
namespace verifying {
namespace {

Rows converted(const Rows& batch, const VerifyOptions& options) {
  Rows rows;
  for (const auto& one : batch) {
    rows.push_back(options.dtype && one.is_floating_point() ? one.to(*options.dtype) : one);
  }
  return rows;
}

void take_step(const Trainee& trainee, double learning_rate) {
  if (trainee.step) {
    trainee.step();
    return;
  }
  const c10::NoGradGuard no_grad;
  for (const auto& one : parameters_of(*trainee.module)) {
    if (one.tensor.grad().defined()) {
      at::Tensor(one.tensor).sub_(one.tensor.grad(), learning_rate);
    }
  }
}

bool same_bits(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& one, const auto& other) {
    return one.defined() == other.defined() && (!one.defined() || one.equal(other));
  });
}

class Verification {
 public:
  Verification(const TraineeFactory& factory, const Rows& batch, const Mesh& mesh, const VerifyOptions& options)
      : options_(options),
        group_(mesh.group()),
        batch_(converted(batch, options)),
        division_(batch_, mesh, options),
        own_rows_(part_of(batch_, division_.rows, division_.place)),
        trainee_(factory(mesh, Role::together)),
        reference_(factory(mesh, Role::alone), *trainee_.module),
        journey_(factory(mesh, Role::alone)),
        watch_(*trainee_.module, options.buffers, group_, division_.slices) {
    copy_start();
    report_.mesh = division_.layout.text();
    report_.ranks = division_.layout.size();
    report_.group = static_cast<int>(division_.slices[0].size());
    for (const auto& entry : watch_.parameters().entries) {
      for (const auto& slice : division_.slices) {
        const auto elements = entry.elements[to_index(slice[0])];
        report_.parameters += elements >= 0 ? 1 : 0;
        report_.elements += static_cast<std::size_t>(std::max<std::int64_t>(elements, 0));
      }
    }
  }

  VerifyReport run() && {
    const auto setup = make_setup();
    for (int step = 0; step < options_.steps && report_.ok(); ++step) {
      compare_state(step);
      if (report_.ok()) {
        take_and_check(setup, step);
      }
    }
    if (report_.ok()) {
      compare_state(options_.steps);
    }
    if (report_.ok()) {
      compare_weights(setup);
    }
    return std::move(report_);
  }

 private:
  void copy_start();
  Setup make_setup() const;
  void compare_state(int step);
  void take_and_check(const Setup& setup, int step);
  OwnStep compute(int step);
  void train(OwnStep& own);
  void compare_weights(const Setup& setup);

  const VerifyOptions& options_;
  const Group group_;
  const Rows batch_;
  const Division division_;
  const Rows own_rows_;
  const Trainee trainee_;
  Reference reference_;
  const Trainee journey_;  // trains alone, with weights of its own
  StateWatch watch_;
  bool repeats_ = true;  // the same rows gave the same bits twice
  std::vector<at::Tensor> previous_;
  std::vector<at::Tensor> start_;
  std::vector<at::Tensor> largest_;  // of each element's gradient, in any step
  VerifyReport report_;
};

/// The journey starts as the trainee does.
void Verification::copy_start() {
  const c10::NoGradGuard no_grad;
  const auto theirs = parameters_of(*trainee_.module);
  const auto own = parameters_of(*journey_.module);
  for (std::size_t i = 0; i < own.size(); ++i) {
    at::Tensor(own[i].tensor).copy_(theirs[i].tensor);
    start_.push_back(flat_doubles(theirs[i].tensor).clone());
    largest_.push_back(at::zeros_like(start_.back()));
  }
}

Setup Verification::make_setup() const {
  std::int64_t most = 1;
  for (const auto& one : batch_) {
    most = std::max(most, one.numel());
  }
  for (const auto& entry : watch_.parameters().entries) {
    most = std::max(most, *std::max_element(entry.elements.begin(), entry.elements.end()));
  }
  // Rounding errors of sums of n terms add up like a random walk, and again in every layer.
  const auto layers = static_cast<double>(std::max<std::size_t>(4, watch_.parameters().entries.size()));
  return {.roster = watch_.parameters(),
          .group = group_,
          .slices = division_.slices,
          .situation = {.mesh = division_.layout,
                        .axes = division_.axes,
                        .shares = division_.shares,
                        .microbatches = options_.microbatches},
          .precision = options_.precision,
          .evaluations = 8 * std::sqrt(static_cast<double>(most)) * layers,
          .exact = !trainee_.backward && options_.microbatches == 1};
}

void Verification::compare_state(int step) {
  for (auto& finding : watch_.compare(step)) {
    finding.hint = hint_for(finding, report_.group, options_.microbatches);
    report_.findings.push_back(std::move(finding));
  }
}

/// What one process makes of this rank's rows and of all.
OwnStep Verification::compute(int step) {
  OwnStep own;
  const auto rows = own_rows_[0].size(0);
  const auto sizes = divide_evenly(rows, options_.microbatches);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    auto part = reference_.compute(part_of(own_rows_, sizes, i));
    if (step == 0 && i == 0) {
      repeats_ = same_bits(part.gradients, reference_.compute(part_of(own_rows_, sizes, i)).gradients);
    }
    const auto count = static_cast<double>(sizes[i]);
    for (auto& one : part.gradients) {
      one = one.defined() ? one * (count / static_cast<double>(batch_[0].size(0))) : one;
    }
    own.expected_loss += part.loss * count / static_cast<double>(rows);
    own.parts.push_back(std::move(part.gradients));
  }
  own.repeats = repeats_;
  auto whole = reference_.compute(batch_);
  own.whole_loss = whole.loss;
  own.whole = std::move(whole.gradients);
  own.previous = previous_;
  previous_.clear();
  for (std::size_t i = 0; i < own.whole.size(); ++i) {
    at::Tensor sum;
    for (const auto& part : own.parts) {
      sum = !part[i].defined() ? sum : sum.defined() ? sum + part[i] : part[i];
    }
    previous_.push_back(sum);
    if (own.whole[i].defined()) {
      largest_[i] = at::max(largest_[i], own.whole[i].abs());
    }
  }
  return own;
}

void Verification::train(OwnStep& own) {
  trainee_.module->zero_grad();
  at::Tensor loss;
  if (trainee_.backward) {
    loss = trainee_.backward(own_rows_);
  } else {
    loss = trainee_.loss(own_rows_);
    loss.backward();
  }
  if (trainee_.synchronize) {
    trainee_.synchronize();
  }
  own.knows_loss = loss.defined();
  own.observed_loss = loss.defined() ? loss.item().toDouble() : std::nan("");
  own.observed = gradients_of(*trainee_.module);
}

void Verification::take_and_check(const Setup& setup, int step) {
  auto own = compute(step);
  train(own);
  auto result = check_step(setup, own, step);
  report_.steps = step + 1;
  report_.losses.push_back(result.loss);
  report_.closeness = std::max(report_.closeness, result.closeness);
  report_.findings = std::move(result.findings);
  take_step(trainee_, options_.learning_rate);
  journey_.module->zero_grad();
  journey_.loss(batch_).backward();
  take_step(journey_, options_.learning_rate);
}

/// Of many ranks and of one, after the same steps. Only where gradients are more than noise: some optimizers make large
/// steps of small gradients.
void Verification::compare_weights(const Setup& setup) {
  const auto theirs = parameters_of(*trainee_.module);
  const auto alone = parameters_of(*journey_.module);
  const auto& entries = setup.roster.entries;
  double steepest = 0;
  for (const auto& one : largest_) {
    steepest = std::max(steepest, one.numel() > 0 ? one.max().item<double>() : 0);
  }
  std::vector<double> errors;
  for (const auto& entry : entries) {
    double error = 0;
    if (entry.place && start_[*entry.place].numel() > 0) {
      const auto i = *entry.place;
      const double evaluation = std::min(0.25, roundoff_of(entry.type) * setup.evaluations);
      const auto counts = largest_[i] > evaluation * steepest;
      const auto end = flat_doubles(alone[i].tensor);
      const auto moved = (end - start_[i]).abs().max().item<double>();
      const auto apart = ((flat_doubles(theirs[i].tensor) - end).abs() * counts).max().item<double>();
      // Weights themselves have no more digits than their type.
      const auto digits = 4 * options_.steps * roundoff_of(entry.type) * end.abs().max().item<double>();
      error = apart <= digits ? 0 : apart / moved;
    }
    errors.push_back(error);
  }
  const auto all = numbers_of_all(errors, group_);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const double roundoff = roundoff_of(entries[i].type);
    const double bound =
        std::max(std::sqrt(roundoff),
                 16 * options_.steps * std::max(std::min(0.25, roundoff * setup.evaluations), setup.precision));
    Finding finding{.step = options_.steps, .what = entries[i].name, .cause = Cause::other_weights, .bound = bound};
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      report_.weights_error = std::max(report_.weights_error, all[rank][i]);
      finding.error = std::max(finding.error, all[rank][i]);
      if (!(all[rank][i] <= bound)) {
        finding.ranks.push_back(to_rank(rank));
      }
    }
    if (!finding.ranks.empty()) {
      finding.hint = hint_for(finding, report_.group, options_.microbatches);
      report_.findings.push_back(finding);
    }
  }
}

}  // namespace

}  // namespace verifying

VerifyReport verify(const TraineeFactory& factory, const Rows& batch, const Mesh& mesh, const VerifyOptions& options) {
  auto report = verifying::Verification(factory, batch, mesh, options).run();
  // Whoever started the job may want to know.
  if (const auto environment = read_environment(); environment && !environment.value().verify_out.empty() &&
                                                   mesh.group().members().front() == Rank{0} &&
                                                   mesh.group().rank() == Rank{0}) {
    append(report, environment.value().verify_out);
  }
  return report;
}

}  // namespace tutti
