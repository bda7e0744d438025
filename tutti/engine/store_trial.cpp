#include "tutti/engine/store_trial.h"

#include <algorithm>
#include <limits>

namespace tutti::engine {
namespace {

constexpr auto kNever = std::numeric_limits<std::uint64_t>::max();

}  // namespace

/// Whether the usual way takes much longer than in its trial, or so much less that the other may have gained as well.
bool StoreTrial::surprised(const Size& size) {
  const auto then = size.tried[size.best ? 1 : 0];
  return size.lately > then + then / 2 || size.lately < then / 2;
}

bool StoreTrial::streams(std::size_t bytes) {
  last_ = nullptr;
  if (bytes < kFrom) {
    return false;
  }
  auto& size = sizes_[static_cast<std::size_t>(std::bit_width(bytes)) - 1];
  last_ = &size;
  const auto place = size.count % kPeriod;
  if (place == kWarmUp) {
    size.trying = due(size.count / kPeriod) || surprised(size);
    if (size.trying) {
      size.tried.fill(kNever);
    }
  }
  wanted_ = size.trying ? place >= kWarmUp + kTries : size.best;
  return wanted_;
}

void StoreTrial::took(std::uint64_t time, bool streamed) {
  if (last_ == nullptr) {
    return;
  }
  auto& size = *last_;
  const auto place = size.count % kPeriod - kWarmUp;
  ++size.count;
  if (!size.trying) {
    size.lately = streamed == wanted_ ? size.lately - size.lately / 8 + time / 8 : size.lately;
    return;
  }
  auto& tried = size.tried[streamed ? 1 : 0];
  if (place % kTries >= kUncounted) {
    tried = std::min(tried, time);
  }
  if (place + 1 == 2 * kTries) {
    size.trying = false;
    const auto [ordinary, streaming] = size.tried;
    if (std::max(ordinary, streaming) != kNever) {
      size.best = streaming < ordinary - ordinary / 8;  // where it wins, it wins by far
      size.lately = size.tried[size.best ? 1 : 0];
    }
  }
}

}  // namespace tutti::engine
