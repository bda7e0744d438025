#pragma once
// Sums of vectors, known by the vectors' inner products alone. Pure.

#include <cstddef>
#include <span>
#include <vector>

namespace tutti::verifying {

/// The inner products of some vectors with each other.
class Products {
 public:
  Products() = default;
  explicit Products(std::size_t vectors) : size_(vectors), values_(vectors * vectors, 0.0) {}

  std::size_t size() const { return size_; }
  double& at(std::size_t i, std::size_t j) { return values_[i * size_ + j]; }
  double at(std::size_t i, std::size_t j) const { return values_[i * size_ + j]; }

  /// As if the other's vectors, times the root of that factor, were appended to these.
  void append(const Products& other, double factor);

  /// <vector i, sum of factor j times vector j>
  double times(std::size_t i, std::span<const double> factors) const;
  /// |sum of factor j times vector j|^2
  double square(std::span<const double> factors) const;
  /// |vector i - sum of factor j times vector j|, with the rounding that comes of squares.
  double distance(std::size_t i, std::span<const double> factors) const;

 private:
  std::size_t size_ = 0;
  std::vector<double> values_;
};

/// The factors, near `guess` where several do, that bring the sum of some of the vectors closest to one of them.
std::vector<double> fit(const Products& products, std::size_t target, std::span<const std::size_t> columns,
                        std::span<const double> guess);

}  // namespace tutti::verifying
