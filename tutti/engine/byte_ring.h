#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>

#include "tutti/engine/call.h"

namespace tutti::engine {

/// How far a ring was written and read, in memory that both ends map; zeros are an empty one.
struct RingWords {
  alignas(64) std::atomic<std::uint64_t> head{0};  ///< bytes written since the beginning: the writer's
  alignas(64) std::atomic<std::uint64_t> tail{0};  ///< bytes read: the reader's
};

/// Bytes from one rank to another, in order. One thread writes, one reads; neither waits.
class ByteRing {
 public:
  ByteRing(RingWords* words, std::byte* bytes, std::size_t size) : words_(words), bytes_(bytes), size_(size) {}

  std::size_t size() const { return size_; }
  std::size_t room() const {
    return size_ - static_cast<std::size_t>(words_->head.load(std::memory_order_relaxed) -
                                            words_->tail.load(std::memory_order_acquire));
  }
  std::size_t waiting() const {
    return static_cast<std::size_t>(words_->head.load(std::memory_order_acquire) -
                                    words_->tail.load(std::memory_order_relaxed));
  }

  /// As many as there is room for; how many that were.
  std::size_t write(ConstBlock from) const {
    const auto count = std::min(room(), from.size());
    const auto head = words_->head.load(std::memory_order_relaxed);
    const auto at = static_cast<std::size_t>(head % size_);
    const auto first = std::min(count, size_ - at);
    if (count != 0) {  // an empty tensor has no address
      std::memcpy(bytes_ + at, from.data(), first);
      std::memcpy(bytes_, from.data() + first, count - first);
      words_->head.store(head + count, std::memory_order_release);
    }
    return count;
  }

  /// As many as are waiting; how many that were.
  std::size_t read(Block to) const {
    const auto count = peek(to);
    if (count != 0) {
      skip(count);
    }
    return count;
  }

  /// The same, and leaves them there.
  std::size_t peek(Block to) const {
    const auto count = std::min(waiting(), to.size());
    const auto at = static_cast<std::size_t>(words_->tail.load(std::memory_order_relaxed) % size_);
    const auto first = std::min(count, size_ - at);
    if (count != 0) {
      std::memcpy(to.data(), bytes_ + at, first);
      std::memcpy(to.data() + first, bytes_, count - first);
    }
    return count;
  }

  void skip(std::size_t count) const {
    words_->tail.store(words_->tail.load(std::memory_order_relaxed) + count, std::memory_order_release);
  }

 private:
  RingWords* words_;
  std::byte* bytes_;
  std::size_t size_;
};

}  // namespace tutti::engine
