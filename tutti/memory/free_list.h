#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace tutti::memory {

/// Which parts of a range of bytes are free: offsets only, no memory. The smallest block that fits is taken, and
/// neighbours that are free become one again. Not thread-safe.
class FreeList {
 public:
  /// Blocks start at multiples of this, or of a page when they are larger than one.
  static constexpr std::size_t kAlignment = 128;
  static constexpr std::size_t kPage = 4096;

  /// What a request of that many bytes takes.
  static std::size_t rounded(std::size_t bytes);

  /// The offset of a free block of rounded(bytes), which is free no longer; nothing when none is large enough.
  std::optional<std::size_t> take(std::size_t bytes);

  /// Gives a block back, of rounded(bytes); or adds new space, at the end of all that was added before.
  void give(std::size_t offset, std::size_t bytes);

  /// Takes the free block that ends at `end` out of the list, when it is at least `at_least` long: its offset.
  std::optional<std::size_t> take_tail(std::size_t end, std::size_t at_least);

  /// How long the free block that ends at `end` is; 0 when that is taken.
  std::size_t tail_bytes(std::size_t end) const;

  std::size_t free_bytes() const { return free_bytes_; }

 private:
  using ByOffset = std::map<std::size_t, std::size_t>;

  void insert(std::size_t offset, std::size_t bytes);
  void erase(ByOffset::iterator block);
  ByOffset::const_iterator ending_at(std::size_t end) const;

  ByOffset blocks_;                                        // offset -> bytes
  std::set<std::pair<std::size_t, std::size_t>> by_size_;  // bytes, offset
  std::size_t free_bytes_ = 0;
};

}  // namespace tutti::memory
