#include "tutti/verify/explanations.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tutti::verifying {
namespace {

constexpr double kEven = 1e-9;           // shares that differ by less are the same
constexpr double kSame = 0.01;           // factors of a fit that differ by less are, too
constexpr std::size_t kMostSubsets = 6;  // ranks, of which all subsets are tried

using Axes = std::vector<std::string>;

bool contains(const auto& list, const auto& value) { return std::find(list.begin(), list.end(), value) != list.end(); }

Axes minus(const Axes& from, const Axes& taken) {
  Axes left;
  std::copy_if(from.begin(), from.end(), std::back_inserter(left),
               [&](const auto& axis) { return !contains(taken, axis); });
  return left;
}

/// All sets of so many things, but the empty one; small ones first.
template <class T>
std::vector<std::vector<T>> subsets(const std::vector<T>& things) {
  std::vector<std::vector<T>> all;
  for (std::size_t bits = 1; bits < std::size_t{1} << things.size(); ++bits) {
    auto& set = all.emplace_back();
    for (std::size_t i = 0; i < things.size(); ++i) {
      if ((bits >> i & 1) != 0) {
        set.push_back(things[i]);
      }
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.size() < b.size(); });
  return all;
}

/// Sets of ranks of a group: all of them, or of a large group those of one and that of all.
std::vector<std::vector<Rank>> sets_of(const std::vector<Rank>& group) {
  if (group.size() <= kMostSubsets) {
    return subsets(group);
  }
  std::vector<std::vector<Rank>> all;
  for (const auto rank : group) {
    all.push_back({rank});
  }
  all.push_back(group);
  return all;
}

class Catalogue {
 public:
  Catalogue(const Situation& situation, const std::vector<Rank>& group)
      : situation_(situation),
        columns_{situation.shares.size(), static_cast<std::size_t>(situation.microbatches)},
        group_(group),
        ones_(sum_of(group)) {}

  std::vector<Explanation> all() && {
    add({.cause = Cause::scaled, .combinations = {ones_}, .any_factor = true});
    add({.cause = Cause::scaled, .combinations = whole(), .any_factor = true});
    add_slices();
    add_wrong_rows();
    add_shares();
    add_missing();
    for (const auto rank : group_) {
      add_one_rank(rank);
    }
    add_microbatches();
    add_stale();
    return std::move(list_);
  }

 private:
  using Combination = std::vector<double>;

  void add(Explanation explanation) { list_.push_back(std::move(explanation)); }

  /// Every rank's own gradient of the whole batch.
  std::vector<Combination> whole() const {
    std::vector<Combination> all;
    for (const auto rank : group_) {
      all.emplace_back(columns_.explaining(), 0.0)[columns_.whole(rank)] = 1;
    }
    return all;
  }

  /// Every rank's own sum over those along some axes.
  std::vector<Combination> slices(const Axes& axes, bool by_share) const {
    std::vector<Combination> all;
    for (const auto rank : group_) {
      const auto ranks = together(situation_, rank, axes);
      all.push_back(by_share ? sum_by_share(ranks) : sum_of(ranks));
    }
    return all;
  }

  Combination sum_of(const std::vector<Rank>& ranks) const {
    Combination sum(columns_.explaining(), 0.0);
    for (const auto rank : ranks) {
      set(sum, rank, 1);
    }
    return sum;
  }

  /// Of means, as ranks have them, and not of contributions.
  Combination sum_by_share(const std::vector<Rank>& ranks) const {
    Combination sum(columns_.explaining(), 0.0);
    for (const auto rank : ranks) {
      set(sum, rank, 1 / share(rank));
    }
    return sum;
  }

  void set(Combination& sum, Rank rank, double factor) const {
    for (std::size_t i = 0; i < columns_.microbatches; ++i) {
      sum[columns_.part(rank, i)] = factor;
    }
  }

  double share(Rank rank) const { return situation_.shares[to_index(rank)]; }

  bool uneven() const {
    const auto [least, most] = std::minmax_element(situation_.shares.begin(), situation_.shares.end());
    return *most - *least > kEven;
  }

  /// Sums over the ranks along any axes but the right ones.
  void add_slices() {
    Axes names;
    for (const auto& axis : situation_.mesh.axes()) {
      if (axis.size > 1) {
        names.push_back(axis.name);
      }
    }
    auto choices = subsets(names);
    choices.insert(choices.begin(), Axes{});
    for (const auto& axes : choices) {
      const auto others = minus(axes, situation_.axes);
      const auto lacking = minus(minus(situation_.axes, axes), minus(situation_.axes, names));
      if (others.empty() && lacking.empty()) {
        continue;
      }
      Explanation explanation{.any_factor = true};
      explanation.cause = !others.empty() ? Cause::over_other_axis
                          : axes.empty()  ? Cause::not_synchronized
                                          : Cause::partly_synchronized;
      explanation.detail = fmt::format("{}", fmt::join(others.empty() ? lacking : others, ","));
      explanation.combinations = slices(axes, false);
      add(explanation);
      if (uneven() && !axes.empty()) {
        explanation.combinations = slices(axes, true);
        add(explanation);
      }
    }
  }

  /// A rank whose loss is that of another's rows.
  void add_wrong_rows() {
    const auto& expected = situation_.expected_losses;
    const auto& observed = situation_.observed_losses;
    const auto near = [this](double a, double b) {
      return std::abs(a - b) <= (1e-7 + 4 * situation_.noise) * std::max(std::abs(a), std::abs(b));
    };
    for (const auto rank : group_) {
      for (const auto other : group_) {
        const auto own = to_index(rank);
        if (rank != other && near(observed[own], expected[to_index(other)]) && !near(observed[own], expected[own])) {
          add_replaced(rank, other);
        }
      }
    }
  }

  void add_replaced(Rank rank, Rank other) {
    auto sum = ones_;
    set(sum, rank, 0);
    set(sum, other, 1 + share(rank) / share(other));
    add({.cause = Cause::replaced, .blamed = {rank}, .detail = std::to_string(to_int(other)), .combinations = {sum}});
  }

  /// The mean of ranks' means, where they have different numbers of rows.
  void add_shares() {
    if (uneven()) {
      add({.cause = Cause::weighted,
           .blamed = group_,
           .detail = "mean of means",
           .combinations = {sum_by_share(group_)},
           .any_factor = true,
           .unit = 1.0 / static_cast<double>(group_.size())});
    }
  }

  void add_missing() {
    for (const auto& gone : sets_of(group_)) {
      if (gone.size() == group_.size()) {
        continue;
      }
      auto sum = ones_;
      double left = 1;
      for (const auto rank : gone) {
        set(sum, rank, 0);
        left -= share(rank);
      }
      const auto size = static_cast<double>(group_.size());
      add_factors({.cause = Cause::missing, .blamed = gone}, sum,
                  {1, 1 / left, size / (size - static_cast<double>(gone.size()))});
    }
  }

  void add_factors(const Explanation& explanation, const Combination& sum, std::vector<double> factors) {
    std::sort(factors.begin(), factors.end());
    factors.erase(std::unique(factors.begin(), factors.end(), [](double a, double b) { return b - a < kEven; }),
                  factors.end());
    for (const auto factor : factors) {
      auto scaled = sum;
      for (auto& one : scaled) {
        one *= factor;
      }
      auto copy = explanation;
      copy.combinations = {std::move(scaled)};
      copy.unit = factor;
      add(std::move(copy));
    }
  }

  void add_one_rank(Rank rank) {
    const auto size = static_cast<double>(group_.size());
    auto sum = ones_;
    set(sum, rank, 2);
    add_factors({.cause = Cause::counted_twice, .blamed = {rank}}, sum, {1, 1 / (1 + share(rank)), size / (size + 1)});
    set(sum, rank, -1);
    add({.cause = Cause::wrong_sign, .blamed = {rank}, .combinations = {sum}});
    for (const auto other : group_) {
      if (other != rank) {
        add_replaced(rank, other);
      }
    }
  }

  /// Some of the passes that make up a step are gone: everywhere, or on one rank.
  void add_microbatches() {
    const auto count = columns_.microbatches;
    if (count < 2) {
      return;
    }
    std::vector<std::size_t> numbers(count);
    for (std::size_t i = 0; i < count; ++i) {
      numbers[i] = i;
    }
    for (const auto& lost : subsets(numbers)) {
      if (lost.size() == count) {
        continue;
      }
      const auto without = [&](const std::vector<Rank>& ranks) {
        auto sum = ones_;
        for (const auto rank : ranks) {
          for (const auto i : lost) {
            sum[columns_.part(rank, i)] = 0;
          }
        }
        return sum;
      };
      const auto text = fmt::format("{}", fmt::join(lost, ","));
      add({.cause = Cause::lost_microbatch,
           .blamed = group_,
           .detail = text,
           .combinations = {without(group_)},
           .any_factor = true});
      for (const auto rank : group_) {
        add({.cause = Cause::lost_microbatch, .blamed = {rank}, .detail = text, .combinations = {without({rank})}});
      }
    }
  }

  void add_stale() {
    for (const auto& late : sets_of(group_)) {
      auto sum = ones_;
      for (const auto rank : late) {
        set(sum, rank, 0);
        sum[columns_.previous(rank)] = 1;
      }
      add({.cause = Cause::stale_weights, .blamed = late, .combinations = {sum}});
    }
  }

  const Situation& situation_;
  const Columns columns_;
  const std::vector<Rank>& group_;
  const Combination ones_;
  std::vector<Explanation> list_;
};

}  // namespace

std::vector<Rank> together(const Situation& situation, Rank rank, const std::vector<std::string>& axes) {
  return axes.empty() ? std::vector{rank} : situation.mesh.slice(rank, axes).value();
}

std::vector<Explanation> explanations(const Situation& situation, const std::vector<Rank>& group) {
  return Catalogue(situation, group).all();
}

std::optional<Diagnosis> name_factors(const Situation& situation, const std::vector<Rank>& group,
                                      const std::vector<double>& factors) {
  Diagnosis diagnosis{.cause = Cause::weighted};
  std::vector<Rank> outside;
  std::vector<Rank> negative;
  std::vector<Rank> gone;
  std::vector<Rank> others;
  double sum = 0;
  double most = 0;
  for (const auto factor : factors) {
    most = std::max(most, std::abs(factor));
  }
  const double little = kSame * most;
  for (std::size_t i = 0; i < factors.size(); ++i) {
    const auto rank = to_rank(i);
    const bool inside = contains(group, rank);
    if (!inside && std::abs(factors[i]) > little) {
      outside.push_back(rank);
    } else if (inside && factors[i] < -little) {
      negative.push_back(rank);
    } else if (inside && factors[i] < little) {
      gone.push_back(rank);
    } else if (inside) {
      sum += factors[i];
      others.push_back(rank);
    }
  }
  const double mean = others.empty() ? 0 : sum / static_cast<double>(others.size());
  const bool equal = std::all_of(others.begin(), others.end(),
                                 [&](Rank rank) { return std::abs(factors[to_index(rank)] - mean) <= little; });
  if (!outside.empty()) {
    Axes axes;
    for (const auto& axis : situation.mesh.axes()) {
      const auto place = situation.mesh.find(axis.name).value();
      const bool differs = std::any_of(outside.begin(), outside.end(), [&](Rank rank) {
        return situation.mesh.coordinate(rank)[place] != situation.mesh.coordinate(group[0])[place];
      });
      if (differs && !contains(situation.axes, axis.name)) {
        axes.push_back(axis.name);
      }
    }
    return Diagnosis{Cause::over_other_axis, {}, outside, mean, fmt::format("{}", fmt::join(axes, ","))};
  }
  if (!negative.empty()) {
    return Diagnosis{Cause::wrong_sign, {}, negative, mean};
  }
  if (!gone.empty() && equal) {
    return Diagnosis{Cause::missing, {}, gone, mean};
  }
  if (gone.empty() && equal) {
    return std::abs(mean - 1) <= kSame ? std::nullopt : std::optional(Diagnosis{Cause::scaled, {}, {}, mean});
  }
  for (const auto rank : group) {
    if (std::abs(factors[to_index(rank)] - 1) > kSame) {
      diagnosis.blamed.push_back(rank);
    }
  }
  return diagnosis;
}

}  // namespace tutti::verifying
