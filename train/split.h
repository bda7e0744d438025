#pragma once

#include <cstdint>
#include <vector>

namespace tutti::train {

/// Bytes `begin` to before `end` of a corpus.
struct Piece {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  bool operator==(const Piece&) const = default;
};

/// Which parts of a corpus are trained on, and which are only looked at to see how well that went.
struct Split {
  std::vector<Piece> training;
  std::vector<Piece> evaluation;
};

/// The corpus is cut into equal stretches (up to 16, of which each has at least 8 KiB to evaluate), and the last part
/// of each is for evaluation: text of all kinds that there are, wherever in the corpus they lie. Depends on nothing but
/// the number of bytes and the share, which is from 0 to below 1. Pure.
Split split(std::int64_t bytes, double share);

}  // namespace tutti::train
