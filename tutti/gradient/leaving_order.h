#pragma once
// In which order buckets leave. Pure.

#include <cstddef>
#include <span>

namespace tutti::gradient {

/// What a bucket's last journey showed; in seconds.
struct Journey {
  double full = 0;       ///< when its last gradient was there
  double under_way = 0;  ///< for how long it had the cable
};

/// Buckets leave as they are full, while backward runs: the last layers' first. Those that will not get the cable
/// before it is over may as well leave in the order in which the next forward needs them: the first layers' first. From
/// which bucket on that is; their number where it makes no difference. Journeys are in the order in which buckets are
/// full.
std::size_t first_held(std::span<const Journey> journeys);

}  // namespace tutti::gradient
