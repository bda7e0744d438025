#include "tutti/verify/diagnose.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "tutti/verify/explanations.h"

namespace tutti::verifying {
namespace {

constexpr double kResolution = 1e-7;      // of distances that come of squares
constexpr double kBetter = 0.1;           // an explanation leaves at most so much of what is to be explained
constexpr double kSameFactor = 1e-3;      // one factor, on several ranks
constexpr std::size_t kElementsEach = 4;  // that a fitted factor needs, so that not everything fits

struct Type {
  const char* name;
  double roundoff;
};
constexpr Type kTypes[] = {{"bfloat16", 0x1p-8}, {"float16", 0x1p-11}, {"float32", 0x1p-24}};

/// What one set of parameters that look alike says.
class Case {
 public:
  Case(const Situation& situation, const std::vector<Rank>& group)
      : situation_(situation),
        columns_{situation.shares.size(), static_cast<std::size_t>(situation.microbatches)},
        group_(group),
        products_(columns_.all()) {}

  void add(const Evidence& evidence) {
    double size = 0;
    for (std::size_t i = 0; i < columns_.ranks * columns_.microbatches; ++i) {
      size += evidence.products.at(i, i);
    }
    products_.append(evidence.products, size > 0 ? 1 / size : 1);
    elements_ += evidence.elements;
    deviation_ = std::max(deviation_, *std::max_element(evidence.deviation.begin(), evidence.deviation.end()));
  }

  std::vector<Diagnosis> diagnose(std::vector<Rank> ranks) const;
  /// Whether it explains what that rank has; with the factor that it then has.
  bool fits(const Explanation& explanation, Rank rank, double& factor) const;
  bool all_fit(const Explanation& explanation, const std::vector<Rank>& ranks) const {
    double factor = 0;
    return std::all_of(ranks.begin(), ranks.end(), [&](Rank rank) { return fits(explanation, rank, factor); });
  }

 private:
  bool close(Rank rank, const std::vector<double>& combination) const;
  std::vector<Diagnosis> explained(const Explanation& explanation, const std::vector<Rank>& ranks) const;
  std::optional<Diagnosis> fitted(Rank rank) const;
  std::optional<Diagnosis> fitted(const std::vector<Rank>& ranks) const;
  std::optional<Diagnosis> rounded() const;

  const Situation& situation_;
  const Columns columns_;
  const std::vector<Rank>& group_;
  Products products_;
  std::size_t elements_ = 0;
  double deviation_ = 0;
};

bool Case::close(Rank rank, const std::vector<double>& combination) const {
  const auto target = columns_.observed(rank);
  std::vector<double> right(columns_.explaining(), 0.0);
  for (const auto member : group_) {
    for (std::size_t i = 0; i < columns_.microbatches; ++i) {
      right[columns_.part(member, i)] = 1;
    }
  }
  const double size = std::sqrt(std::max(1.0, products_.at(target, target)));
  const double left = products_.distance(target, combination);
  return left <= size * std::max(kResolution, 4 * situation_.noise) &&
         left <= kBetter * products_.distance(target, right);
}

bool Case::fits(const Explanation& explanation, Rank rank, double& factor) const {
  const auto member = std::find(group_.begin(), group_.end(), rank) - group_.begin();
  auto combination = explanation.of(static_cast<std::size_t>(member));
  factor = 1;
  if (explanation.any_factor) {
    const double square = products_.square(combination);
    if (square <= 0 || elements_ < 2) {
      return false;
    }
    factor = products_.times(columns_.observed(rank), combination) / square;
    for (auto& one : combination) {
      one *= factor;
    }
  }
  return close(rank, combination);
}

std::vector<Diagnosis> Case::explained(const Explanation& explanation, const std::vector<Rank>& ranks) const {
  std::vector<Diagnosis> found;
  for (const auto rank : ranks) {
    double factor = 1;
    fits(explanation, rank, factor);
    factor = explanation.any_factor ? factor / explanation.unit : explanation.unit;
    const auto same = std::find_if(found.begin(), found.end(), [&](const auto& one) {
      return std::abs(one.factor - factor) <= kSameFactor * std::abs(factor);
    });
    if (same != found.end()) {
      same->ranks.push_back(rank);
    } else {
      found.push_back({explanation.cause, {rank}, explanation.blamed, factor, explanation.detail});
    }
  }
  for (auto& one : found) {
    if (one.cause == Cause::scaled && one.factor < 0) {
      one.cause = Cause::wrong_sign;
      one.blamed = group_;
    }
  }
  return found;
}

std::optional<Diagnosis> Case::fitted(Rank rank) const {
  const auto count = columns_.ranks * columns_.microbatches;
  if (elements_ < kElementsEach * count) {
    return std::nullopt;
  }
  std::vector<std::size_t> parts(count);
  std::vector<double> guess(count, 0.0);
  for (std::size_t i = 0; i < count; ++i) {
    parts[i] = i;
  }
  for (const auto member : group_) {
    for (std::size_t i = 0; i < columns_.microbatches; ++i) {
      guess[columns_.part(member, i)] = 1;
    }
  }
  auto combination = fit(products_, columns_.observed(rank), parts, guess);
  std::vector<double> factors(columns_.ranks, 0.0);
  for (std::size_t i = 0; i < count; ++i) {
    factors[i / columns_.microbatches] += combination[i] / static_cast<double>(columns_.microbatches);
  }
  combination.resize(columns_.explaining(), 0.0);
  auto named = close(rank, combination) ? name_factors(situation_, group_, factors) : std::nullopt;
  if (named) {
    named->ranks = {rank};
  }
  return named;
}

/// One for all of them.
std::optional<Diagnosis> Case::fitted(const std::vector<Rank>& ranks) const {
  std::optional<Diagnosis> common;
  for (const auto rank : ranks) {
    const auto own = fitted(rank);
    if (!own || (common && (common->cause != own->cause || common->blamed != own->blamed))) {
      return std::nullopt;
    }
    common = common ? common : own;
  }
  if (common) {
    common->ranks = ranks;
  }
  return common;
}

std::optional<Diagnosis> Case::rounded() const {
  const Type* best = nullptr;
  for (const auto& type : kTypes) {
    // A few elements may all be rounded by little; many hardly.
    if (deviation_ <= 2 * type.roundoff) {
      best = &type;
    }
  }
  if (best == nullptr) {
    return std::nullopt;
  }
  return Diagnosis{.cause = Cause::rounded, .detail = best->name};
}

std::vector<Diagnosis> Case::diagnose(std::vector<Rank> ranks) const {
  const auto list = explanations(situation_, group_);
  for (const auto& one : list) {
    if (all_fit(one, ranks)) {
      return explained(one, ranks);
    }
  }
  if (auto common = fitted(ranks)) {
    return {*common};
  }
  if (auto common = rounded()) {
    common->ranks = ranks;
    return {*common};
  }
  // Not one for all: whatever explains most, then the others.
  std::vector<Diagnosis> found;
  while (!ranks.empty()) {
    std::vector<Rank> most;
    const Explanation* best = nullptr;
    for (const auto& one : list) {
      std::vector<Rank> some;
      double factor = 0;
      std::copy_if(ranks.begin(), ranks.end(), std::back_inserter(some),
                   [&](Rank rank) { return fits(one, rank, factor); });
      if (some.size() > most.size()) {
        most = some;
        best = &one;
      }
    }
    if (best != nullptr) {
      const auto more = explained(*best, most);
      found.insert(found.end(), more.begin(), more.end());
    } else if (auto own = fitted(ranks.front())) {
      most = {ranks.front()};
      found.push_back(*own);
    } else {
      most = {ranks.front()};
      const bool known = !found.empty() && found.back().cause == Cause::unknown;
      if (known) {
        found.back().ranks.push_back(ranks.front());
      } else {
        found.push_back({Cause::unknown, {ranks.front()}, {}});
      }
    }
    std::erase_if(ranks, [&](Rank rank) { return std::find(most.begin(), most.end(), rank) != most.end(); });
  }
  return found;
}

bool is_known(const std::vector<Diagnosis>& diagnoses) {
  return std::none_of(diagnoses.begin(), diagnoses.end(), [](const auto& one) { return one.cause == Cause::unknown; });
}

/// Those numbered, which are wrong on the same ranks: together if one explanation does for all, otherwise the largest
/// by itself, with those that it explains, too.
void diagnose_alike(const Situation& situation, std::span<const Evidence> parameters, std::vector<std::size_t> numbers,
                    std::vector<std::vector<Diagnosis>>& found) {
  const auto& ranks = parameters[numbers[0]].wrong;
  const auto group = together(situation, ranks[0], situation.axes);
  const auto case_of = [&](const std::vector<std::size_t>& some) {
    Case one(situation, group);
    for (const auto number : some) {
      one.add(parameters[number]);
    }
    return one;
  };
  const auto pooled = case_of(numbers).diagnose(ranks);
  if (is_known(pooled) || numbers.size() == 1) {
    for (const auto number : numbers) {
      found[number] = pooled;
    }
    return;
  }
  const auto largest = *std::max_element(numbers.begin(), numbers.end(), [&](std::size_t a, std::size_t b) {
    return parameters[a].elements < parameters[b].elements;
  });
  const auto alone = case_of({largest}).diagnose(ranks);
  std::vector<std::size_t> others;
  found[largest] = alone;
  for (const auto number : numbers) {
    if (number == largest) {
      continue;
    }
    const auto both = is_known(alone) ? case_of({largest, number}).diagnose(ranks) : std::vector<Diagnosis>{};
    const bool same = both.size() == alone.size() && !both.empty() && both[0].cause == alone[0].cause &&
                      both[0].blamed == alone[0].blamed && both[0].detail == alone[0].detail;
    if (same) {
      found[number] = both;
    } else {
      others.push_back(number);
    }
  }
  if (!others.empty()) {
    diagnose_alike(situation, parameters, others, found);
  }
}

}  // namespace

std::vector<std::vector<Diagnosis>> diagnose(const Situation& situation, std::span<const Evidence> parameters) {
  std::map<std::vector<Rank>, std::vector<std::size_t>> by_ranks;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    by_ranks[parameters[i].wrong].push_back(i);
  }
  std::vector<std::vector<Diagnosis>> found(parameters.size());
  for (const auto& [ranks, numbers] : by_ranks) {
    diagnose_alike(situation, parameters, numbers, found);
  }
  return found;
}

}  // namespace tutti::verifying
