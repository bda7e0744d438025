#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tutti::observe {

/// Which of ever more rows stay where there is room for a fixed number: all of them at first, then every second, every
/// fourth and so on; and always the newest. The rows lie elsewhere, in numbered slots; this says in which.
class Thinning {
 public:
  explicit Thinning(std::size_t slots);  ///< at least 2

  /// The slot that the next row goes to, in place of what is there. Allocates nothing.
  std::size_t next();
  /// The slots that hold rows, the oldest first.
  const std::vector<std::size_t>& slots() const { return used_; }

 private:
  void drop_every_second();

  std::vector<std::size_t> used_;
  std::vector<std::size_t> free_;  // the last is taken first
  std::int64_t seen_ = 0;
  std::int64_t stride_ = 1;
};

}  // namespace tutti::observe
