#include "tutti/kernels/stream.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tutti/kernels/stream.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tutti::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// Whole lines only: a part of one would be read back from memory first.
void stream_lines(std::byte* to, const std::byte* from, std::size_t bytes) {
  const hn::CappedTag<std::uint8_t, 64> bytes_of_vector;  // a line, where vectors are longer
  const std::size_t step = hn::Lanes(bytes_of_vector);
  for (std::size_t i = 0; i < bytes; i += step) {
    const auto v = hn::LoadU(bytes_of_vector, reinterpret_cast<const std::uint8_t*>(from) + i);
    hn::Stream(v, bytes_of_vector, reinterpret_cast<std::uint8_t*>(to) + i);
  }
}

}  // namespace tutti::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tutti::kernels {
namespace {
HWY_EXPORT(stream_lines);
}  // namespace

void stream_copy(std::byte* to, const std::byte* from, std::size_t bytes) {
  constexpr std::size_t kLine = 64;
  const auto misplaced = reinterpret_cast<std::uintptr_t>(to) % kLine;
  const auto head = std::min(bytes, misplaced == 0 ? 0 : kLine - misplaced);
  const auto lines = (bytes - head) / kLine * kLine;
  const auto tail = bytes - head - lines;
  if (head != 0) {
    std::memcpy(to, from, head);
  }
  if (lines != 0) {
    HWY_DYNAMIC_DISPATCH(stream_lines)(to + head, from + head, lines);
    hwy::FlushStream();
  }
  if (tail != 0) {
    std::memcpy(to + head + lines, from + head + lines, tail);
  }
}

}  // namespace tutti::kernels
#endif
