#include "tutti/base/forked.h"

#include <pthread.h>

#include <atomic>

namespace tutti {
namespace {

std::atomic<std::uint64_t> generation{0};

}  // namespace

std::uint64_t process_generation() {
  static const int kRegistered = ::pthread_atfork(nullptr, nullptr, [] { generation.fetch_add(1); });
  (void)kRegistered;
  return generation.load(std::memory_order_relaxed);
}

}  // namespace tutti
