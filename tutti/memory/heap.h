#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "tutti/base/error.h"
#include "tutti/base/file_descriptor.h"
#include "tutti/base/rank.h"
#include "tutti/memory/free_list.h"

namespace tutti::memory {

/// Where a file keeps the heaps of a group's ranks: one behind the other, each `bytes_each` long. The file is sparse:
/// what nobody allocated costs nothing.
struct HeapLayout {
  std::size_t begin = 0;
  std::size_t bytes_each = 0;
  int ranks = 1;

  /// Heaps as large as this machine's memory each; more could not be had anyway.
  static std::size_t default_bytes_each();
  std::size_t offset(Rank rank) const { return begin + to_index(rank) * bytes_each; }
  std::size_t end() const { return offset(Rank{ranks}); }

  /// How far behind its start a rank's heap begins to be used. What ranks allocate alike would otherwise lie at
  /// addresses that differ in their highest bits only: processors that guess a line's place in the first cache by the
  /// lower ones (AMD's) then read two ranks' buffers at a third of the speed, and more than eight at the same place in
  /// their pages do not fit that cache's ways.
  static std::size_t skew(Rank rank) { return to_index(rank) * 17 * 4096 + to_index(rank) / 4 * 448; }
  std::size_t usable(Rank rank) const { return bytes_each - skew(rank); }
};

/// Symmetric memory to allocate from: what a rank takes from its own heap, every peer can reach by its place.
/// Allocating is cheap: space is reserved in large pieces, kept and used again; only the first use of a peer's heap
/// maps anything. Any thread.
class Heap {
 public:
  /// `fd` is the group's file, of at least layout.end() bytes.
  Heap(FileDescriptor fd, const HeapLayout& layout, Rank rank);
  ~Heap();
  Heap(const Heap&) = delete;

  /// At least `bytes`, aligned to a cache line. Fails when memory cannot be had; what it returns can be touched without
  /// fear.
  Result<std::byte*> allocate(std::size_t bytes);
  void free(std::byte* data);

  /// Where these bytes lie in this rank's heap, or nothing when they are elsewhere.
  std::optional<std::uint64_t> place_of(const std::byte* data, std::size_t bytes) const;

  /// The bytes at a place in a rank's heap. Blocks only at the first look into that rank's heap.
  Result<std::byte*> at(Rank rank, std::uint64_t place, std::size_t bytes);

  std::size_t bytes_in_use() const;
  std::size_t bytes_reserved() const;

 private:
  Result<std::byte*> map(Rank rank);
  std::size_t offset_of(std::size_t place) const { return layout_.offset(rank_) + HeapLayout::skew(rank_) + place; }
  Status grow(std::size_t bytes);
  void shrink();

  FileDescriptor fd_;
  HeapLayout layout_;
  Rank rank_;
  const pid_t process_;
  mutable std::mutex mutex_;
  std::vector<std::atomic<std::byte*>> maps_;  // by rank, behind the skew; null until first used
  FreeList free_;
  std::unordered_map<std::size_t, std::size_t> taken_;  // offset -> bytes asked for
  std::size_t in_use_ = 0;
  std::size_t reserved_ = 0;  // of our heap, from its start
};

}  // namespace tutti::memory
