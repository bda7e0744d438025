#include "tutti/memory/wait.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

namespace tutti::memory {
namespace {

// Not the private form: the word lies in memory of several processes.
long futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value, const timespec* timeout) {
  return ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), operation, value, timeout, nullptr, 0);
}

}  // namespace

static_assert(std::atomic<std::uint32_t>::is_always_lock_free && sizeof(std::atomic<std::uint32_t>) == 4);

Patience Patience::for_ranks(int ranks, int cores) {
  Patience patience;
  if (ranks > cores) {
    patience.spins = 1;
    patience.yield_for = std::chrono::microseconds(30);
  }
  return patience;
}

void order_before_ringing() {
  // Orders the caller's store before the look at `sleepers`; pairs with the increment in wait_until.
#if !defined(__SANITIZE_THREAD__)
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

void ring_ordered(Bell& bell) {
#if defined(__SANITIZE_THREAD__)
  // TSAN knows no fences. Writing the same number back orders as well, at the cost of taking the line from its rank.
  const auto sleepers = bell.sleepers.fetch_add(0, std::memory_order_seq_cst);
#else
  const auto sleepers = bell.sleepers.load(std::memory_order_relaxed);
#endif
  if (sleepers != 0) {
    bell.rings.fetch_add(1, std::memory_order_seq_cst);
    futex(bell.rings, FUTEX_WAKE, INT_MAX, nullptr);
  }
}

void ring(Bell& bell) {
  order_before_ringing();
  ring_ordered(bell);
}

void yield_core() { ::sched_yield(); }

bool sleep_at(Bell& bell, std::uint32_t heard, std::chrono::nanoseconds at_most) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(at_most);
  const timespec timeout{.tv_sec = seconds.count(), .tv_nsec = (at_most - seconds).count()};
  return futex(bell.rings, FUTEX_WAIT, heard, &timeout) == 0;
}

}  // namespace tutti::memory
