#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "tutti/base/error.h"
#include "tutti/base/rank.h"

namespace tutti::engine {

/// How a rank tells where its bytes are, and finds those of a peer. Any thread.
class Reach {
 public:
  virtual ~Reach() = default;

  /// A number by which peers find these bytes, or nothing when they cannot.
  virtual std::optional<std::uint64_t> place_of(const std::byte* data, std::size_t bytes) const = 0;

  /// A peer's bytes, from the number that it told.
  virtual Result<std::byte*> at(Rank rank, std::uint64_t place, std::size_t bytes) const = 0;

  /// Memory that peers can reach, at least as well aligned as a cache line.
  virtual Result<std::byte*> allocate(std::size_t bytes) = 0;
  virtual void free(std::byte* data) = 0;
};

}  // namespace tutti::engine
