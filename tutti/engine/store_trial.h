#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#if !defined(__x86_64__)
#include <chrono>
#endif

namespace tutti::engine {

/// A clock that costs next to nothing, in units of its own.
inline std::uint64_t ticks() {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#else
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
#endif
}

/// Finds out which stores are quicker for what a peer reads next: ordinary ones, that leave it in this core's cache, or
/// streaming ones, past the caches. That depends on how near each other the ranks' cores are, which nobody tells, and
/// which changes where a virtual machine is moved about. So both are tried, a few times each, soon after the first
/// operation of a size, when the time of one changes, and once in a while. All ranks count operations alike, so they
/// try at the same ones; the result's bits depend on neither.
class StoreTrial {
 public:
  /// Below, everything stays in the first caches, and ordinary stores win.
  static constexpr std::size_t kFrom = 32 << 10;
  /// In every so many operations of a size there may be a trial: when there is a reason, and without one in the first
  /// of these periods, the second, third, fifth, ninth, and at last in every 16th.
  static constexpr std::uint32_t kPeriod = 128;
  /// Before the first trial memory is touched for the first time.
  static constexpr std::uint32_t kWarmUp = 4;
  /// One trial: this many operations with ordinary stores, then as many with streaming ones. The first two of each find
  /// caches as the other left them, and do not count.
  static constexpr std::uint32_t kTries = 5;

  /// Whether the next operation of this size shall stream.
  bool streams(std::size_t bytes);
  /// How long that one took, without waiting for ranks that came late; and whether it did stream.
  void took(std::uint64_t time, bool streamed);

 private:
  static constexpr std::uint32_t kUncounted = 2;
  static constexpr std::uint32_t kUsual = 16;  // periods between trials without a reason

  struct Size {
    std::uint32_t count = 0;
    bool trying = false;
    bool best = false;                     // streaming?
    std::array<std::uint64_t, 2> tried{};  // the best time of each, in the last trial
    std::uint64_t lately = 0;              // of the one in use, smoothed
  };

  static bool surprised(const Size& size);
  static bool due(std::uint32_t period) { return period % kUsual == 0 || std::has_single_bit(period); }

  std::array<Size, 64> sizes_{};
  Size* last_ = nullptr;
  bool wanted_ = false;
};

}  // namespace tutti::engine
