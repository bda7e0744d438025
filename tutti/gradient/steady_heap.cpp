#include "tutti/gradient/steady_heap.h"

#include <malloc.h>

#include <climits>
#include <cstdlib>
#include <string_view>

namespace tutti::gradient {

bool may_keep_freed_memory() {
  if (std::getenv("MALLOC_TRIM_THRESHOLD_") != nullptr || std::getenv("MALLOC_MMAP_THRESHOLD_") != nullptr) {
    return false;
  }
  const auto* const tunables = std::getenv("GLIBC_TUNABLES");
  const std::string_view text(tunables == nullptr ? "" : tunables);
  return text.find("malloc.trim_threshold") == text.npos && text.find("malloc.mmap_threshold") == text.npos;
}

void keep_freed_memory() {
#if defined(__GLIBC__)
  static const bool kOnce = [] {
    constexpr int kLargestHeapBlock = 32 << 20;  // the most that is allowed; beyond it blocks come from the system
    if (may_keep_freed_memory()) {
      // Setting one of them ends the library's own adjusting of the other.
      ::mallopt(M_TRIM_THRESHOLD, INT_MAX);
      ::mallopt(M_MMAP_THRESHOLD, kLargestHeapBlock);
    }
    return true;
  }();
  static_cast<void>(kOnce);
#endif
}

}  // namespace tutti::gradient
