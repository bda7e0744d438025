#include "train/batches.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "train/shuffle.h"

namespace tutti::train {
namespace {

/// The n-th of so many parts that differ by one at most begins here; without a product that could overflow.
std::int64_t beginning(std::int64_t total, std::int64_t parts, std::int64_t n) {
  return total / parts * n + std::min(n, total % parts);
}

}  // namespace

Windows::Windows(std::vector<Piece> pieces, std::int64_t context) : pieces_(std::move(pieces)), context_(context) {
  require(context >= 1, "a window has a token at least");
  std::int64_t total = 0;
  for (const auto& piece : pieces_) {
    total += std::max<std::int64_t>(0, (piece.end - piece.begin - 1) / context_);
    ends_.push_back(total);
  }
}

std::int64_t Windows::begin(std::int64_t window) const {
  require(window >= 0 && window < count(), "a window is one of those there are");
  const auto after = std::upper_bound(ends_.begin(), ends_.end(), window);
  const auto before = after == ends_.begin() ? 0 : *(after - 1);
  return pieces_[static_cast<std::size_t>(after - ends_.begin())].begin + (window - before) * context_;
}

std::vector<std::int64_t> Windows::some(std::int64_t most) const {
  const auto chosen = std::min(most, count());
  std::vector<std::int64_t> begins;
  for (std::int64_t i = 0; i < chosen; ++i) {
    begins.push_back(begin(beginning(count(), chosen, i)));
  }
  return begins;
}

Result<Batches> Batches::make(Windows windows, const Options& options) {
  const auto& from = options.from;
  if (windows.count() == 0) {
    return Error{Code::invalid_argument,
                 fmt::format("the data has no stretch of {} bytes, which is what a context of {} needs: give more text "
                             "or a shorter context",
                             windows.context() + 1, windows.context())};
  }
  if (options.batch < 1 || from.step < 0 || from.sample < 0) {
    return Error{Code::invalid_argument,
                 fmt::format("a batch of {} samples from step {} and sample {} on makes no sense", options.batch,
                             from.step, from.sample)};
  }
  if (from.windows != 0 && from.windows != windows.count()) {
    return Error{Code::invalid_argument,
                 fmt::format("the data has {} windows of {} tokens, and had {} when the position was saved: go on with "
                             "the same data and context, or begin anew",
                             windows.count(), windows.context(), from.windows)};
  }
  return Batches(std::move(windows), options);
}

Position Batches::position(std::int64_t step) const {
  require(step >= options_.from.step, "steps before the one that was gone on from are not known");
  return {.step = step,
          .sample = options_.from.sample + (step - options_.from.step) * options_.batch,
          .windows = windows_.count()};
}

std::vector<std::int64_t> Batches::part(std::int64_t step, const Part& part) const {
  require(to_int(part.rank) >= 0 && to_int(part.rank) < part.ranks, "a part is of one of the ranks");
  require(part.microbatch >= 0 && part.microbatch < part.microbatches, "a part is of one of the microbatches");
  // A microbatch is a stretch of the batch, and a rank's part a stretch of that.
  const auto parts = std::int64_t{part.ranks} * part.microbatches;
  const auto number = std::int64_t{part.microbatch} * part.ranks + to_int(part.rank);
  const auto first = position(step).sample;
  std::vector<std::int64_t> begins;
  std::optional<Shuffle> order;
  std::int64_t epoch = -1;
  for (auto i = beginning(options_.batch, parts, number); i < beginning(options_.batch, parts, number + 1); ++i) {
    if (const auto now = (first + i) / windows_.count(); now != epoch) {
      epoch = now;
      order.emplace(windows_.count(), options_.seed, epoch);
    }
    begins.push_back(windows_.begin((*order)[(first + i) % windows_.count()]));
  }
  return begins;
}

}  // namespace tutti::train
