#include "tutti/verify/step_check.h"

#include <algorithm>
#include <cmath>

#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include "tutti/verify/exchange.h"
#include "tutti/verify/words.h"

namespace tutti::verifying {
namespace {

constexpr double kMostEvaluation = 0.25;  // of small types: nothing can be said below
constexpr double kBackdrop = 0.05;        // of the largest gradient of all parameters
constexpr double kSentBelow = 0x1p-14;    // what is sent as a smaller type may have fewer digits below

/// Numbers that every rank tells of itself, and then of each parameter.
enum Number : std::size_t { expected_loss, observed_loss, knows_loss, whole_loss, exact, before_parameters };
enum ParameterNumber : std::size_t { expected, observed, largest, each };

class StepCheck {
 public:
  StepCheck(const Setup& setup, const OwnStep& own, int step)
      : setup_(setup),
        own_(own),
        step_(step),
        situation_(setup.situation),
        evidence_(setup.slices.size()),
        incomplete_(setup.slices.size()) {}

  StepResult run() && {
    exchange_numbers();
    for (std::size_t entry = 0; entry < entries().size(); ++entry) {
      const auto all = gather(entry);
      for (std::size_t i = 0; i < setup_.slices.size(); ++i) {
        if (entries()[entry].held_by(setup_.slices[i][0])) {
          inspect_entry(entry, all, i);
        }
      }
    }
    for (std::size_t i = 0; i < setup_.slices.size(); ++i) {
      add_diagnoses(i);
    }
    check_losses();
    settle();
    return std::move(result_);
  }

 private:
  const std::vector<Roster::Entry>& entries() const { return setup_.roster.entries; }
  double number(Rank rank, Number which) const { return numbers_[to_index(rank)][which]; }
  double number(Rank rank, std::size_t entry, ParameterNumber which) const {
    return numbers_[to_index(rank)][before_parameters + entry * each + which];
  }

  void exchange_numbers();
  Gradients gather(std::size_t entry) const;
  Tolerance tolerance(std::size_t entry, const std::vector<Rank>& slice) const;
  void inspect_entry(std::size_t entry, const Gradients& all, std::size_t slice);
  void add_diagnoses(std::size_t slice);
  void check_losses();
  void settle();

  const Setup& setup_;
  const OwnStep& own_;
  const int step_;
  Situation situation_;
  std::vector<std::vector<Evidence>> evidence_;   // by slice
  std::vector<std::vector<Finding>> incomplete_;  // findings that lack their cause, one for each piece of evidence
  std::vector<std::vector<double>> numbers_;
  bool exact_ = true;
  StepResult result_;
};

/// This rank's, or nothing where it has none.
at::Tensor own_of(const std::vector<at::Tensor>& tensors, const Roster::Entry& entry) {
  return entry.place && *entry.place < tensors.size() ? tensors[*entry.place] : at::Tensor();
}

void StepCheck::exchange_numbers() {
  std::vector<double> numbers{own_.expected_loss, own_.observed_loss, own_.knows_loss ? 1.0 : 0.0, own_.whole_loss,
                              own_.repeats && setup_.exact ? 1.0 : 0.0};
  for (const auto& entry : entries()) {
    double size = 0;
    bool has = false;
    for (const auto& part : own_.parts) {
      const auto gradient = own_of(part, entry);
      has = has || gradient.defined();
      size += gradient.defined() && gradient.numel() > 0 ? gradient.abs().max().item<double>() : 0;
    }
    numbers.insert(numbers.end(), {has ? 1.0 : 0.0, own_of(own_.observed, entry).defined() ? 1.0 : 0.0, size});
  }
  numbers_ = numbers_of_all(numbers, setup_.group);
  for (std::size_t i = 0; i < numbers_.size(); ++i) {
    situation_.expected_losses.push_back(number(to_rank(i), expected_loss));
    situation_.observed_losses.push_back(number(to_rank(i), observed_loss));
    exact_ = exact_ && number(to_rank(i), exact) != 0;
  }
}

Gradients StepCheck::gather(std::size_t entry) const {
  auto elements = entries()[entry].elements;
  for (auto& one : elements) {
    one = std::max<std::int64_t>(one, 0);
  }
  const auto nothing = at::zeros({elements[to_index(setup_.group.rank())]}, at::kDouble);
  std::vector<at::Tensor> rows;
  const auto add = [&](const std::vector<at::Tensor>& from) {
    const auto own = own_of(from, entries()[entry]);
    rows.push_back(own.defined() ? own : nothing);
  };
  for (const auto& part : own_.parts) {
    add(part);
  }
  add(own_.previous);
  add(own_.whole);
  add(own_.observed);
  Gradients all{.by_rank = tensors_of_all(at::stack(rows), elements, setup_.group), .expected = {}, .observed = {}};
  for (std::size_t i = 0; i < numbers_.size(); ++i) {
    all.expected.push_back(number(to_rank(i), entry, expected) != 0);
    all.observed.push_back(number(to_rank(i), entry, observed) != 0);
  }
  return all;
}

Tolerance StepCheck::tolerance(std::size_t entry, const std::vector<Rank>& slice) const {
  double most = 0;
  for (std::size_t i = 0; i < entries().size(); ++i) {
    double size = 0;
    for (const auto rank : slice) {
      size += number(rank, i, largest);
    }
    most = std::max(most, size);
  }
  const auto type = entries()[entry].type;
  const double own = roundoff_of(type);
  return {.roundoff = std::max(own, setup_.precision),
          .smallest = smallest_normal(type) + setup_.precision * kSentBelow,
          .evaluation = std::min(kMostEvaluation, own * setup_.evaluations),
          .backdrop = kBackdrop * most,
          .exact = exact_};
}

void StepCheck::inspect_entry(std::size_t entry, const Gradients& all, std::size_t slice) {
  const auto& group = setup_.slices[slice];
  const auto allowed = tolerance(entry, group);
  const auto seen = inspect(all, group, allowed);
  result_.closeness = std::max(result_.closeness, seen.closeness);
  Finding finding{.step = step_, .what = entries()[entry].name, .error = seen.error, .bound = seen.bound};
  for (const auto& rows : all.by_rank) {
    finding.norms.push_back(rows[-1].norm().item<double>());
    finding.contributions.push_back(rows.narrow(0, 0, rows.size(0) - 3).sum(0).norm().item<double>());
  }
  const auto note = [&](Cause cause, const std::vector<Rank>& ranks) {
    if (!ranks.empty()) {
      auto& added = result_.findings.emplace_back(finding);
      added.cause = cause;
      added.ranks = ranks;
    }
  };
  note(Cause::random, seen.random);
  note(Cause::gradient_missing, seen.missing);
  note(Cause::gradient_unexpected, seen.unexpected);
  note(Cause::rows_coupled, seen.coupled);
  note(Cause::not_finite, seen.not_finite);
  if (!seen.not_finite.empty()) {
    std::copy_if(group.begin(), group.end(), std::back_inserter(result_.findings.back().blamed), [&](Rank rank) {
      const auto& rows = all.by_rank[to_index(rank)];
      const bool own_is = std::isfinite(finding.contributions[to_index(rank)]) && rows.size(1) > 0;
      return !own_is || (number(rank, knows_loss) != 0 && !std::isfinite(number(rank, observed_loss)));
    });
  }
  if (!seen.wrong.empty()) {
    const double noise = allowed.exact ? static_cast<double>(group.size() + 3) * allowed.roundoff
                                       : allowed.evaluation + setup_.precision;
    situation_.noise = std::max(situation_.noise, noise);
    evidence_[slice].push_back({.parameter = finding.what,
                                .elements = static_cast<std::size_t>(entries()[entry].elements[to_index(group[0])]),
                                .wrong = seen.wrong,
                                .deviation = seen.deviation,
                                .products = products_of(all, group)});
    incomplete_[slice].push_back(std::move(finding));
  }
}

void StepCheck::add_diagnoses(std::size_t slice) {
  const auto diagnoses = diagnose(situation_, evidence_[slice]);
  for (std::size_t i = 0; i < diagnoses.size(); ++i) {
    for (const auto& one : diagnoses[i]) {
      auto& added = result_.findings.emplace_back(incomplete_[slice][i]);
      added.cause = one.cause;
      added.ranks = one.ranks;
      added.blamed = one.blamed;
      added.factor = one.factor;
      added.detail = one.detail;
    }
  }
}

void StepCheck::check_losses() {
  double roundoff = 0;
  for (const auto& entry : entries()) {
    roundoff = std::max(roundoff, roundoff_of(entry.type));
  }
  const double allowed = std::min(kMostEvaluation, roundoff * setup_.evaluations);
  for (const auto& slice : setup_.slices) {
    VerifyReport::Loss loss{.together = 0, .alone = number(slice[0], whole_loss)};
    double size = std::abs(loss.alone);
    bool known = true;
    for (const auto rank : slice) {
      const double part = situation_.shares[to_index(rank)] * number(rank, observed_loss);
      loss.together += part;
      size += std::abs(part);
      known = known && number(rank, knows_loss) != 0;
    }
    result_.loss = &slice == &setup_.slices[0] ? loss : result_.loss;
    if (known && result_.findings.empty() && !(std::abs(loss.together - loss.alone) <= allowed * size)) {
      result_.findings.push_back({.step = step_,
                                  .cause = Cause::other_loss,
                                  .ranks = slice,
                                  .error = std::abs(loss.together - loss.alone) / size,
                                  .bound = allowed});
    }
  }
}

/// What is found of several slices is one finding; parameters are in their order; what is random explains the rest.
void StepCheck::settle() {
  auto& findings = result_.findings;
  const auto is_random = [](const Finding& one) { return one.cause == Cause::random; };
  if (std::any_of(findings.begin(), findings.end(), is_random)) {
    std::erase_if(findings, [&](const Finding& one) { return !is_random(one); });
  }
  std::vector<Finding> merged;
  for (const auto& entry : entries()) {
    const auto first = merged.size();
    for (const auto& one : findings) {
      if (one.what != entry.name) {
        continue;
      }
      const auto same =
          std::find_if(merged.begin() + static_cast<std::ptrdiff_t>(first), merged.end(), [&](const auto& other) {
            return other.cause == one.cause && other.detail == one.detail && std::abs(other.factor - one.factor) < 1e-6;
          });
      if (same == merged.end()) {
        merged.push_back(one);
        continue;
      }
      for (auto [from, to] : {std::pair{&one.ranks, &same->ranks}, std::pair{&one.blamed, &same->blamed}}) {
        to->insert(to->end(), from->begin(), from->end());
        std::sort(to->begin(), to->end());
        to->erase(std::unique(to->begin(), to->end()), to->end());
      }
      same->error = std::max(same->error, one.error);
    }
  }
  std::copy_if(findings.begin(), findings.end(), std::back_inserter(merged),
               [](const Finding& one) { return one.what.empty(); });
  for (auto& one : merged) {
    one.hint = hint_for(one, static_cast<int>(setup_.slices[0].size()), setup_.situation.microbatches);
  }
  findings = std::move(merged);
}

}  // namespace

StepResult check_step(const Setup& setup, const OwnStep& own, int step) { return StepCheck(setup, own, step).run(); }

}  // namespace tutti::verifying
