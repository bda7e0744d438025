#pragma once

#include <cstdint>

namespace tutti::train {

/// An order of the numbers 0 to before `size` that looks drawn by lot and is computed, not stored: any place of it can
/// be asked for, on any rank, and it is the same everywhere. It depends on (size, seed, epoch) alone. Any thread; pure.
///
/// A Feistel network permutes the numbers of an even count of bits, of which `size` needs most; a result that is too
/// large is permuted again until it is not, which on average takes less than four times.
class Shuffle {
 public:
  /// `size` is at least 1.
  Shuffle(std::int64_t size, std::uint64_t seed, std::int64_t epoch);

  std::int64_t size() const { return size_; }
  /// The number at `place`, which is from 0 to before size.
  std::int64_t operator[](std::int64_t place) const;

 private:
  std::uint64_t permute(std::uint64_t value) const;

  std::int64_t size_;
  unsigned half_bits_ = 0;
  std::uint64_t key_ = 0;
};

}  // namespace tutti::train
