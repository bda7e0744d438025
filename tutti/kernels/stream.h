#pragma once

#include <cstddef>

namespace tutti::kernels {

/// Copies past the caches: for what somebody on another core reads next, when taking its lines back from there would
/// cost more than memory does. Done, and visible to whoever sees a later store, when it returns. The two lie apart.
void stream_copy(std::byte* to, const std::byte* from, std::size_t bytes);

}  // namespace tutti::kernels
