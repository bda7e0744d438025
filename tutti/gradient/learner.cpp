#include "tutti/gradient/learner.h"

#include <algorithm>

namespace tutti::gradient {
namespace {

constexpr int kUnusedPasses = 3;  // then nobody waits for it any more
constexpr int kUsedPasses = 2;    // then it travels with the others again
constexpr int kMostPatience = 1024;

}  // namespace

bool Learner::pass_over(std::span<const std::uint8_t> needed, bool other_order) {
  bool changed = !learned_;
  for (std::size_t i = 0; i < needed.size(); ++i) {
    unused_[i] = needed[i] != 0 ? 0 : unused_[i] + 1;
    used_[i] = needed[i] != 0 ? used_[i] + 1 : 0;
    changed = changed || (aside_[i] != 0 ? used_[i] >= kUsedPasses : unused_[i] >= kUnusedPasses);
  }
  out_of_order_ = other_order ? out_of_order_ + 1 : 0;
  if (out_of_order_ >= patience_) {
    patience_ = std::min(2 * patience_, kMostPatience);  // where order is a matter of chance, learning does not help
    changed = true;
  }
  return changed;
}

void Learner::divided() {
  learned_ = true;
  out_of_order_ = 0;
  for (std::size_t i = 0; i < aside_.size(); ++i) {
    aside_[i] = unused_[i] >= kUnusedPasses || (aside_[i] != 0 && used_[i] < kUsedPasses) ? 1 : 0;
  }
}

}  // namespace tutti::gradient
