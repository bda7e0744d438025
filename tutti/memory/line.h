#pragma once

#include <cstddef>

namespace tutti::memory {

/// What cores hand each other: a line of their caches.
inline constexpr std::size_t kLine = 64;

/// Begins to fetch the line at `address` for writing, and does not wait for it. Who will soon write a line that others
/// have read asks for it while there is something else to do.
inline void fetch_to_write(const void* address) {
#if defined(__x86_64__)
  // Not __builtin_prefetch: it fetches to read unless the compiler is told of a processor newer than the oldest.
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(address)));
#else
  __builtin_prefetch(address, 1);
#endif
}

}  // namespace tutti::memory
