#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "tutti/base/error.h"

namespace tutti::memory {

/// Whether a rank is there, as its peers see it.
enum class Presence { absent, here, left, died };

/// A rank's mark of life, in memory that ranks share; a cache line of its own.
struct alignas(64) LifeWord {
  std::atomic<std::uint32_t> word{0};
  std::atomic<std::int32_t> pid{0};
};

/// Any thread of any process that maps the word.
Presence presence(const LifeWord& life);

/// Marks a rank as here for as long as this object lives, as left when it ends, and as died when the process is
/// killed at whatever instant: the kernel itself then writes the word (a robust futex), within microseconds.
/// A thread of its own holds the mark.
class LifeMark {
 public:
  /// Fails when the word is taken: two processes claim the same rank.
  static Result<std::unique_ptr<LifeMark>> hold(LifeWord& life);
  virtual ~LifeMark() = default;
};

/// The mark of a rank that is a thread: it dies with the process, so the word is just written.
void mark_here(LifeWord& life);
void mark_left(LifeWord& life);

}  // namespace tutti::memory
