#pragma once

#include <cstddef>

namespace tutti::cli {

/// Bytes per second that memcpy moves (each byte is read once and written once).
struct CopySpeed {
  double one_core = 0;
  double all_cores = 0;
  std::size_t bytes = 0;  ///< moved in a pass; smaller than the caches, and those were measured
};

/// Measures for less than a second with `threads` threads; the buffers take twice `bytes`. Zeros when memory is short.
CopySpeed measure_copy_speed(int threads, std::size_t bytes);

}  // namespace tutti::cli
