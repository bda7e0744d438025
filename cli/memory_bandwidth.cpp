#include "cli/memory_bandwidth.h"

#include <sys/mman.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

namespace tutti::cli {
namespace {

using Clock = std::chrono::steady_clock;

class Buffer {
 public:
  explicit Buffer(std::size_t bytes)
      : bytes_(bytes),
        start_(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {}
  ~Buffer() {
    if (valid()) {
      ::munmap(start_, bytes_);
    }
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  bool valid() const { return start_ != MAP_FAILED; }
  char* at(std::size_t offset) const { return static_cast<char*>(start_) + offset; }

 private:
  std::size_t bytes_;
  void* start_;
};

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

}  // namespace

CopySpeed measure_copy_speed(int threads, std::size_t bytes) {
  const Buffer from(bytes);
  const Buffer to(bytes);
  if (!from.valid() || !to.valid() || threads < 1) {
    return {};
  }
  CopySpeed speed{.bytes = bytes};
  const auto count = static_cast<std::size_t>(threads);
  Clock::time_point start;
  std::barrier together(threads, [&]() noexcept { start = Clock::now(); });
  std::vector<double> seconds(count, 0);
  {
    std::vector<std::jthread> workers;
    for (std::size_t i = 0; i < count; ++i) {
      workers.emplace_back([&, i] {
        const std::size_t first = bytes * i / count;
        const std::size_t length = bytes * (i + 1) / count - first;
        std::memset(from.at(first), 1, length);  // by the thread that uses it: memory comes from its own node
        std::memset(to.at(first), 2, length);
        together.arrive_and_wait();
        std::memcpy(to.at(first), from.at(first), length);
        seconds[i] = seconds_since(start);
      });
    }
  }
  speed.all_cores = static_cast<double>(bytes) / *std::max_element(seconds.begin(), seconds.end());
  const auto alone = Clock::now();
  std::memcpy(to.at(0), from.at(0), bytes);
  speed.one_core = static_cast<double>(bytes) / seconds_since(alone);
  return speed;
}

}  // namespace tutti::cli
