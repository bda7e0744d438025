#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "train/split.h"
#include "tutti/base/error.h"
#include "tutti/base/rank.h"

namespace tutti::train {

/// The windows of some pieces of a corpus: `context` + 1 bytes each, the input and, shifted by one, what is to be
/// predicted. A window begins where the one before has its last byte, so every byte but a piece's first is predicted
/// once; what is left at a piece's end is too short for one. Pure.
class Windows {
 public:
  Windows(std::vector<Piece> pieces, std::int64_t context);

  std::int64_t context() const { return context_; }
  std::int64_t count() const { return ends_.empty() ? 0 : ends_.back(); }
  /// Where in the corpus a window begins. Windows are numbered from 0.
  std::int64_t begin(std::int64_t window) const;

  /// Where so many of them begin, spread evenly over all; all when there are no more. Always the same.
  std::vector<std::int64_t> some(std::int64_t most) const;

 private:
  std::vector<Piece> pieces_;
  std::vector<std::int64_t> ends_;  // by piece: windows in it and those before
  std::int64_t context_;
};

/// How far a training has come in its data: what is saved to go on with. The epoch is sample / windows.
struct Position {
  std::int64_t step = 0;     ///< the next one
  std::int64_t sample = 0;   ///< its first; samples are numbered through all steps and epochs
  std::int64_t windows = 0;  ///< of the data that this is about; 0: of any
  bool operator==(const Position&) const = default;
};

/// Which part of a global batch.
struct Part {
  Rank rank{0};
  int ranks = 1;
  int microbatch = 0;
  int microbatches = 1;
};

/// The stream of global batches. Samples are numbered; each epoch is all windows in an order that depends on (seed,
/// epoch) alone; a batch takes the next `batch` samples, across the end of an epoch too. So batches are the same for
/// any number of ranks and microbatches, which only divide them. Any thread; pure.
class Batches {
 public:
  struct Options {
    std::int64_t batch = 1;  ///< samples of all ranks and microbatches together
    std::uint64_t seed = 0;
    Position from = {};  ///< goes on there, also with another batch
  };

  /// Fails without windows, and where `from` belongs to other data.
  static Result<Batches> make(Windows windows, const Options& options);

  /// Where the windows of a step's part begin. Parts that cannot be equal differ by one.
  std::vector<std::int64_t> part(std::int64_t step, const Part& part) const;
  /// Those of the whole batch.
  std::vector<std::int64_t> all(std::int64_t step) const { return part(step, {}); }

  /// To be saved before that step.
  Position position(std::int64_t step) const;
  std::int64_t epoch(std::int64_t step) const { return position(step).sample / windows_.count(); }
  const Windows& windows() const { return windows_; }

 private:
  Batches(Windows windows, const Options& options) : windows_(std::move(windows)), options_(options) {}

  Windows windows_;
  Options options_;
};

}  // namespace tutti::train
