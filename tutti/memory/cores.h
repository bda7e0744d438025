#pragma once

#include <cstdint>

namespace tutti::memory {

/// A set of cores, as it can lie in memory that ranks share.
struct Cores {
  static constexpr int kMost = 1024;

  std::uint64_t bits[kMost / 64] = {};

  int count() const;
  Cores& operator|=(const Cores& other);

  /// Those on which the calling thread may run.
  static Cores allowed();
};

}  // namespace tutti::memory
