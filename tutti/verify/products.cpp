#include "tutti/verify/products.h"

#include <algorithm>
#include <cmath>

#include "tutti/base/error.h"

namespace tutti::verifying {
namespace {

// What directions that vectors hardly span are held to the guess with, beside vectors of length one. Squares of
// doubles tell nothing below 1e-16.
constexpr double kPull = 1e-11;

/// Solves a symmetric positive system in place, by Cholesky's way.
std::vector<double> solve(Products matrix, std::vector<double> right) {
  const auto size = right.size();
  for (std::size_t i = 0; i < size; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      double sum = matrix.at(i, j);
      for (std::size_t k = 0; k < j; ++k) {
        sum -= matrix.at(i, k) * matrix.at(j, k);
      }
      matrix.at(i, j) = i == j ? std::sqrt(std::max(sum, kPull / 2)) : sum / matrix.at(j, j);
    }
  }
  for (std::size_t i = 0; i < size; ++i) {
    for (std::size_t k = 0; k < i; ++k) {
      right[i] -= matrix.at(i, k) * right[k];
    }
    right[i] /= matrix.at(i, i);
  }
  for (std::size_t i = size; i-- > 0;) {
    for (std::size_t k = i + 1; k < size; ++k) {
      right[i] -= matrix.at(k, i) * right[k];
    }
    right[i] /= matrix.at(i, i);
  }
  return right;
}

}  // namespace

void Products::append(const Products& other, double factor) {
  require(size_ == other.size_, "appended vectors are as many");
  for (std::size_t i = 0; i < values_.size(); ++i) {
    values_[i] += factor * other.values_[i];
  }
}

double Products::times(std::size_t i, std::span<const double> factors) const {
  double sum = 0;
  for (std::size_t j = 0; j < factors.size(); ++j) {
    sum += factors[j] * at(i, j);
  }
  return sum;
}

double Products::square(std::span<const double> factors) const {
  double sum = 0;
  for (std::size_t i = 0; i < factors.size(); ++i) {
    sum += factors[i] * times(i, factors);
  }
  return sum;
}

double Products::distance(std::size_t i, std::span<const double> factors) const {
  return std::sqrt(std::max(0.0, at(i, i) - 2 * times(i, factors) + square(factors)));
}

std::vector<double> fit(const Products& products, std::size_t target, std::span<const std::size_t> columns,
                        std::span<const double> guess) {
  const auto count = columns.size();
  std::vector<double> lengths(count);
  for (std::size_t i = 0; i < count; ++i) {
    lengths[i] = std::sqrt(products.at(columns[i], columns[i]));
  }
  // For the difference from the guess, with vectors made as long as one.
  Products matrix(count);
  std::vector<double> right(count);
  for (std::size_t i = 0; i < count; ++i) {
    matrix.at(i, i) = 1 + kPull;
    if (lengths[i] == 0) {
      continue;
    }
    double known = products.at(columns[i], target);
    for (std::size_t j = 0; j < count; ++j) {
      const double product = products.at(columns[i], columns[j]);
      known -= guess[j] * product;
      if (i != j && lengths[j] > 0) {
        matrix.at(i, j) = product / (lengths[i] * lengths[j]);
      }
    }
    right[i] = known / lengths[i];
  }
  auto factors = solve(matrix, right);
  for (std::size_t i = 0; i < count; ++i) {
    factors[i] = guess[i] + (lengths[i] > 0 ? factors[i] / lengths[i] : 0);
  }
  return factors;
}

}  // namespace tutti::verifying
