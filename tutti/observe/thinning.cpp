#include "tutti/observe/thinning.h"

#include "tutti/base/error.h"

namespace tutti::observe {

Thinning::Thinning(std::size_t slots) {
  require(slots >= 2, "a table of a run needs room for its first row and its last");
  used_.reserve(slots);
  free_.reserve(slots);
  for (std::size_t slot = slots; slot > 0; --slot) {
    free_.push_back(slot - 1);
  }
}

std::size_t Thinning::next() {
  const auto number = seen_++;
  if (number > 0 && (number - 1) % stride_ != 0) {
    return used_.back();  // that one was here only for being the newest
  }
  if (free_.empty()) {
    drop_every_second();
  }
  used_.push_back(free_.back());
  free_.pop_back();
  return used_.back();
}

void Thinning::drop_every_second() {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < used_.size(); ++i) {
    if (i % 2 == 0) {
      used_[kept++] = used_[i];
    } else {
      free_.push_back(used_[i]);
    }
  }
  used_.resize(kept);
  stride_ *= 2;
}

}  // namespace tutti::observe
