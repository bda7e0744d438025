#pragma once
// When parameters are to be divided into buckets anew. Pure.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tutti::gradient {

/// What it is told is what all ranks agreed on; so all come to the same.
class Learner {
 public:
  explicit Learner(std::size_t parameters) : unused_(parameters, 0), used_(parameters, 0), aside_(parameters, 0) {}

  /// A pass is over: by parameter whether some rank needed it, and whether buckets filled in another order than they
  /// left in. True when it is time to divide anew.
  bool pass_over(std::span<const std::uint8_t> needed, bool other_order);

  /// They are: what nobody needed for some passes is put aside.
  void divided();

  bool is_aside(std::size_t parameter) const { return aside_[parameter] != 0; }

 private:
  std::vector<int> unused_;  // for how many passes
  std::vector<int> used_;
  std::vector<char> aside_;
  bool learned_ = false;
  int out_of_order_ = 0;  // passes in a row
  int patience_ = 2;
};

}  // namespace tutti::gradient
