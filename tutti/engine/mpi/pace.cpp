#include "tutti/engine/mpi/pace.h"

#include <utility>

namespace tutti::engine::mpi {

void Pace::begin(Time now) {
  if (under_way_++ == 0) {
    since_ = now;
  }
}

void Pace::end(Time now, std::size_t bytes) {
  waited_ += now - std::exchange(since_, now);
  bytes_ += bytes;
  --under_way_;
  if (bytes_ < kEnough) {
    return;
  }
  slow_ = static_cast<double>(bytes_) < waited_.count() * (slow_ ? kFast : kSlow);
  waited_ = {};
  bytes_ = 0;
}

}  // namespace tutti::engine::mpi
