#include "tutti/verify/inspect.h"

#include <algorithm>

#include <ATen/ops/isfinite.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

namespace tutti::verifying {
namespace {

// Rows of Gradients from the end.
constexpr std::int64_t kObserved = -1;
constexpr std::int64_t kWhole = -2;
constexpr std::int64_t kPrevious = -3;

double largest(const at::Tensor& values) { return values.numel() == 0 ? 0 : values.abs().max().item<double>(); }

bool finite(const at::Tensor& values) { return at::isfinite(values).all().item<bool>(); }

at::Tensor parts_of(const at::Tensor& rows) { return rows.narrow(0, 0, rows.size(0) + kPrevious); }

/// An error as a part of what it may be: at most one where it is right.
double part_of_bound(const at::Tensor& error, const at::Tensor& bound) { return largest(error / bound); }

class Inspector {
 public:
  Inspector(const Gradients& gradients, const std::vector<Rank>& group, const Tolerance& tolerance)
      : gradients_(gradients), group_(group), tolerance_(tolerance) {
    const auto& first = rows(group[0]);
    sum_ = at::zeros({first.size(1)}, at::kDouble);
    size_ = at::zeros_like(sum_);
    for (const auto rank : group) {
      sum_ += parts_of(rows(rank)).sum(0);
      size_ += parts_of(rows(rank)).abs().sum(0);
    }
    whole_ = first[kWhole];
    result_.largest = std::max(largest(size_), largest(whole_));
    loose_ = tolerance.evaluation * (result_.largest + tolerance.backdrop) + tolerance.smallest;
    const auto rounding = static_cast<double>(group.size() + 3) * tolerance.roundoff;
    bound_ = size_ * rounding + tolerance.smallest + (tolerance.exact ? 0 : loose_);
  }

  Inspection run() && {
    for (const auto rank : group_) {
      if (largest(rows(rank)[kWhole] - whole_) > loose_) {
        result_.random.push_back(rank);
      }
    }
    coupled_ = largest(sum_ - whole_) > loose_;
    const bool expected =
        std::any_of(group_.begin(), group_.end(), [&](Rank rank) { return gradients_.expected[to_index(rank)]; });
    for (const auto rank : group_) {
      const auto observed = rows(rank)[kObserved];
      if (!finite(observed) || !finite(sum_)) {
        result_.not_finite.push_back(rank);
      } else if (!gradients_.observed[to_index(rank)]) {
        if (expected && result_.largest > 0) {
          result_.missing.push_back(rank);
        }
      } else if (!expected && largest(observed) > 0) {
        result_.unexpected.push_back(rank);
      } else {
        compare(rank, observed);
      }
    }
    return std::move(result_);
  }

 private:
  const at::Tensor& rows(Rank rank) const { return gradients_.by_rank[to_index(rank)]; }

  void compare(Rank rank, const at::Tensor& observed) {
    const auto error = (observed - sum_).abs();
    const double part = part_of_bound(error, bound_);
    // Where rows depend on each other, the whole batch's gradient is the right one.
    const double rounding = static_cast<double>(group_.size() + 3) * tolerance_.roundoff * result_.largest;
    const bool as_whole = coupled_ && largest(observed - whole_) <= loose_ + rounding;
    if (as_whole || (part <= 1 && !coupled_)) {
      result_.closeness = std::max(result_.closeness, as_whole ? 0 : part);
      return;
    }
    const auto against = part <= 1 ? (observed - whole_).abs() : error;
    if (result_.largest > 0 && largest(against) / result_.largest > result_.error) {
      result_.error = largest(against) / result_.largest;
      result_.bound = (part <= 1 ? loose_ : largest(bound_)) / result_.largest;
    }
    if (part <= 1) {
      result_.coupled.push_back(rank);
      return;
    }
    result_.wrong.push_back(rank);
    const auto floor = at::where(size_ > 0, size_, at::zeros_like(size_) + std::max(result_.largest, 0x1p-1000));
    result_.deviation.push_back(largest(at::where(error > bound_, error / floor, at::zeros_like(error))));
  }

  const Gradients& gradients_;
  const std::vector<Rank>& group_;
  const Tolerance& tolerance_;
  at::Tensor sum_, size_, whole_, bound_;
  double loose_ = 0;
  bool coupled_ = false;
  Inspection result_;
};

}  // namespace

Inspection inspect(const Gradients& gradients, const std::vector<Rank>& group, const Tolerance& tolerance) {
  return Inspector(gradients, group, tolerance).run();
}

Products products_of(const Gradients& gradients, const std::vector<Rank>& group) {
  const auto& own = gradients.by_rank[to_index(group[0])];
  const Columns columns{gradients.by_rank.size(), static_cast<std::size_t>(own.size(0) + kPrevious)};
  std::vector<at::Tensor> vectors(columns.all(), at::zeros({own.size(1)}, at::kDouble));
  for (std::size_t i = 0; i < gradients.by_rank.size(); ++i) {
    const auto rank = to_rank(i);
    const auto& rows = gradients.by_rank[i];
    if (rows.size(1) != own.size(1) || !finite(rows)) {
      continue;  // another part of the model
    }
    for (std::size_t part = 0; part < columns.microbatches; ++part) {
      vectors[columns.part(rank, part)] = rows[static_cast<std::int64_t>(part)];
    }
    vectors[columns.previous(rank)] = rows[kPrevious];
    vectors[columns.whole(rank)] = rows[kWhole];
    vectors[columns.observed(rank)] = rows[kObserved];
  }
  const auto stacked = at::stack(vectors);
  const auto values = at::matmul(stacked, stacked.t()).contiguous();
  const auto* value = values.data_ptr<double>();
  Products products(columns.all());
  for (std::size_t i = 0; i < columns.all(); ++i) {
    for (std::size_t j = 0; j < columns.all(); ++j) {
      products.at(i, j) = *value++;
    }
  }
  return products;
}

}  // namespace tutti::verifying
