#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <utility>

#include "tutti/base/deadline.h"

namespace tutti::memory {

/// What a sleeper listens to. Lies in memory that ranks share; one per rank, in a cache line of its own.
struct alignas(64) Bell {
  std::atomic<std::uint32_t> rings{0};
  std::atomic<std::uint32_t> sleepers{0};
};

/// How to wait: spin while a peer is likely to be quick, then sleep. With more ranks than cores do not spin at all:
/// the peer that is waited for needs the core.
struct Patience {
  int spins = 2000;
  /// How long to let others run before the sleep, where ranks share cores.
  std::chrono::microseconds yield_for = std::chrono::microseconds(0);
  /// Where one yield takes longer, somebody computes on this core: then sleep, and be woken.
  std::chrono::microseconds longest_yield = std::chrono::hours(1);
  /// How often a sleeper looks up to see whether its peers are still alive.
  std::chrono::microseconds look_up = std::chrono::milliseconds(2);

  static Patience for_ranks(int ranks, int cores);
};

/// Wakes whoever sleeps at `bell`. To be called after the store that the sleeper waits for; costs a load when nobody
/// sleeps.
void ring(Bell& bell);

/// The two halves of `ring`, for a store that several wait for: the order is made once, then every bell is looked at.
void order_before_ringing();
void ring_ordered(Bell& bell);

void yield_core();

/// Sleeps until the bell has rung more often than `heard`, or `at_most` has passed. True when it was woken.
bool sleep_at(Bell& bell, std::uint32_t heard, std::chrono::nanoseconds at_most);

/// Waits without sleeping. False when patience is at its end.
template <class Ready>
bool spin_until(const Patience& patience, Ready&& ready) {
  for (int i = 0; i < patience.spins; ++i) {
    if (ready()) {
      return true;
    }
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
  if (patience.yield_for.count() == 0) {
    return false;
  }
  // By time, not by number: where somebody else computes, one yield may cost a whole turn of his.
  auto now = std::chrono::steady_clock::now();
  const auto end = now + patience.yield_for;
  auto last = std::chrono::steady_clock::duration(0);
  do {
    yield_core();
    if (ready()) {
      return true;
    }
    const auto before = std::exchange(now, std::chrono::steady_clock::now());
    last = now - before;
  } while (now < end && last < patience.longest_yield);
  return false;
}

/// Waits until `ready()` is true. Between sleeps asks `give_up()`, which may look at peers; returns false when that is
/// true or the deadline has passed. `ready` is asked once more after the sleep was announced, so that no ring is lost.
template <class Ready, class GiveUp>
bool wait_until(Bell& bell, const Patience& patience, Deadline deadline, Ready&& ready, GiveUp&& give_up) {
  if (spin_until(patience, ready)) {
    return true;
  }
  for (;;) {
    bell.sleepers.fetch_add(1, std::memory_order_seq_cst);
    const auto heard = bell.rings.load(std::memory_order_seq_cst);
    if (ready()) {
      bell.sleepers.fetch_sub(1, std::memory_order_relaxed);
      return true;
    }
    const auto nap = std::min<std::chrono::nanoseconds>(patience.look_up, deadline.remaining());
    sleep_at(bell, heard, nap);
    bell.sleepers.fetch_sub(1, std::memory_order_relaxed);
    if (ready()) {
      return true;
    }
    if (give_up() || deadline.expired()) {
      // A peer may have done its part just before it died: what is there counts.
      return ready();
    }
  }
}

}  // namespace tutti::memory
