// The limit: an all-reduce of processes that map the same memory, with no library around it. Nothing is checked,
// nothing waits but by spinning, and the buffers lie where every rank can read and write them.
//
//   one-shot   every rank copies its buffer into a slot, and adds all slots: one meeting, for small buffers
//   two-shot   every rank adds its slice of all buffers and writes the sum into all of them: two meetings, least
//   traffic best       whichever a short trial finds faster for the size
//
// bare_loop -n RANKS --sizes 8,4Ki,1Mi [--algorithm one-shot|two-shot|best]; float32 sums only.

#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "bench/collective.h"
#include "bench/measure.h"

namespace {

constexpr std::size_t kMostRanks = 32;
constexpr std::size_t kMostOneShot = 1 << 18;  // bytes
constexpr std::size_t kLine = 64;
constexpr std::size_t kPage = 4096;

struct alignas(kLine) Arrival {
  std::atomic<std::uint64_t> count{0};
};

/// What lies at the start of the shared memory; zeros are a valid state of it.
struct Meeting {
  std::array<Arrival, kMostRanks> arrivals;
  double agreed;
};

std::byte* map_shared(std::size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    bench::fail("cannot map " + std::to_string(bytes) + " bytes of shared memory");
  }
  return static_cast<std::byte*>(memory);
}

/// All that the ranks share; made once, before they are forked.
struct Shared {
  std::size_t ranks;
  std::size_t stride;  // from one rank's buffer to the next
  Meeting* meeting;
  std::byte* slots;  // two sets of one slot per rank
  std::byte* buffers;
  double* times;

  Shared(std::size_t rank_count, std::size_t most_bytes)
      : ranks(rank_count),
        stride((most_bytes / kPage + 1) * kPage),
        meeting(reinterpret_cast<Meeting*>(map_shared(sizeof(Meeting)))),
        slots(map_shared(2 * ranks * kMostOneShot)),
        buffers(map_shared(ranks * stride)),
        times(reinterpret_cast<double*>(map_shared(ranks * bench::kMostSamples * sizeof(double)))) {}

  [[nodiscard]] float* buffer(std::size_t rank) const { return reinterpret_cast<float*>(buffers + rank * stride); }
  [[nodiscard]] float* slot(std::size_t set, std::size_t rank) const {
    return reinterpret_cast<float*>(slots + (set * ranks + rank) * kMostOneShot);
  }
};

class ForkedWorld final : public bench::World {
 public:
  ForkedWorld(const Shared& shared, std::size_t rank, bool crowded) : shared_(shared), rank_(rank), crowded_(crowded) {}
  [[nodiscard]] std::size_t rank() const override { return rank_; }
  [[nodiscard]] std::size_t ranks() const override { return shared_.ranks; }
  /// How often this rank has met the others.
  [[nodiscard]] std::uint64_t meetings() const { return meetings_; }

  void barrier() override {
    auto& arrivals = shared_.meeting->arrivals;
    arrivals[rank_].count.store(++meetings_, std::memory_order_release);
    for (std::size_t r = 0; r < shared_.ranks; ++r) {
      while (arrivals[r].count.load(std::memory_order_acquire) < meetings_) {
        pause();
      }
    }
  }

  double agree(double value) override {
    if (rank_ == 0) {
      shared_.meeting->agreed = value;
    }
    barrier();
    value = shared_.meeting->agreed;
    barrier();
    return value;
  }

  std::vector<double> slowest(std::vector<double> values) override {
    std::copy(values.begin(), values.end(), shared_.times + rank_ * bench::kMostSamples);
    barrier();
    for (std::size_t r = 0; r < shared_.ranks; ++r) {
      for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = std::max(values[i], shared_.times[r * bench::kMostSamples + i]);
      }
    }
    barrier();
    return values;
  }

 private:
  void pause() const {
    if (crowded_) {
      sched_yield();
    } else {
      __builtin_ia32_pause();
    }
  }

  const Shared& shared_;
  std::size_t rank_;
  bool crowded_;
  std::uint64_t meetings_ = 0;
};

/// The number of buffers is a constant, so that one pass over memory reads and writes all of them.
template <std::size_t kRanks>
using Buffers = std::array<float*, kRanks>;

template <std::size_t kRanks>
void add_into_all(Buffers<kRanks> at, std::size_t begin, std::size_t end) {
#pragma omp simd
  for (std::size_t i = begin; i < end; ++i) {
    float sum = at[0][i];
    for (std::size_t r = 1; r < kRanks; ++r) {
      sum += at[r][i];
    }
    for (std::size_t r = 0; r < kRanks; ++r) {
      at[r][i] = sum;
    }
  }
}

template <std::size_t kRanks>
void add_into_one(Buffers<kRanks> at, float* out, std::size_t count) {
#pragma omp simd
  for (std::size_t i = 0; i < count; ++i) {
    float sum = at[0][i];
    for (std::size_t r = 1; r < kRanks; ++r) {
      sum += at[r][i];
    }
    out[i] = sum;
  }
}

template <std::size_t kRanks>
void one_shot(ForkedWorld& world, const Shared& shared, std::size_t count) {
  // Two sets in turn: who fills one for the second time has met everybody since the first, so all have read it.
  const std::size_t set = (world.meetings() + 1) % 2;
  float* own = shared.buffer(world.rank());
  std::memcpy(shared.slot(set, world.rank()), own, count * sizeof(float));
  Buffers<kRanks> slots{};
  for (std::size_t r = 0; r < kRanks; ++r) {
    slots[r] = shared.slot(set, r);
  }
  world.barrier();
  add_into_one<kRanks>(slots, own, count);
}

template <std::size_t kRanks>
void two_shot(ForkedWorld& world, const Shared& shared, std::size_t count) {
  constexpr std::size_t kPerLine = kLine / sizeof(float);
  const std::size_t lines = (count + kPerLine - 1) / kPerLine;
  const std::size_t begin = lines * world.rank() / kRanks * kPerLine;
  const std::size_t end = std::min(lines * (world.rank() + 1) / kRanks * kPerLine, count);
  Buffers<kRanks> buffers{};
  for (std::size_t r = 0; r < kRanks; ++r) {
    buffers[r] = shared.buffer(r);
  }
  world.barrier();
  add_into_all<kRanks>(buffers, begin, end);
  world.barrier();
}

using Algorithm = void (*)(ForkedWorld&, const Shared&, std::size_t);
struct Named {
  const char* name;
  Algorithm run;
};

template <std::size_t... kCounts>
std::vector<Named> algorithms_of(std::size_t ranks, std::index_sequence<kCounts...>) {
  static constexpr Algorithm kOneShot[] = {one_shot<kCounts + 1>...};
  static constexpr Algorithm kTwoShot[] = {two_shot<kCounts + 1>...};
  return {{"one-shot", kOneShot[ranks - 1]}, {"two-shot", kTwoShot[ranks - 1]}};
}

void verify(ForkedWorld& world, const Shared& shared, const bench::Shape& shape, Algorithm run) {
  float* own = shared.buffer(world.rank());
  bench::fill(shape, world.rank(), own);
  run(world, shared, shape.part);
  bench::check(shape, world.rank(), own);
  world.barrier();
  std::memset(own, 0, shape.bytes());
  world.barrier();
}

bench::Summary measure_one(ForkedWorld& world, const Shared& shared, const bench::Options& options,
                           const bench::Shape& shape, const Named& algorithm) {
  return bench::measure(
      world, options, [&] { algorithm.run(world, shared, shape.part); },
      [&] { std::memset(shared.buffer(world.rank()), 0, shape.bytes()); });
}

Named choose(ForkedWorld& world, const Shared& shared, const bench::Options& options, const bench::Shape& shape) {
  auto candidates = algorithms_of(shared.ranks, std::make_index_sequence<kMostRanks>{});
  std::erase_if(candidates, [&](const Named& one) {
    return (options.algorithm != "best" && options.algorithm != one.name) ||
           (shape.bytes() > kMostOneShot && std::string(one.name) == "one-shot");
  });
  if (candidates.empty()) {
    bench::fail("no algorithm '" + options.algorithm + "' for this size; one-shot takes at most 256 KiB");
  }
  bench::Options trial = options;
  trial.seconds_per_size *= 0.2;
  std::vector<double> medians;
  for (const Named& candidate : candidates) {
    verify(world, shared, shape, candidate.run);
    medians.push_back(
        candidates.size() == 1 ? 0 : world.agree(measure_one(world, shared, trial, shape, candidate).median_us));
  }
  return candidates[static_cast<std::size_t>(std::min_element(medians.begin(), medians.end()) - medians.begin())];
}

void run_rank(ForkedWorld& world, const Shared& shared, const bench::Options& options) {
  for (const std::size_t size : options.sizes) {
    const auto shape = bench::shape_of(bench::Op::all_reduce, bench::Dtype::float32, shared.ranks, size);
    const Named best = choose(world, shared, options, shape);
    const auto summary = measure_one(world, shared, options, shape, best);
    verify(world, shared, shape, best.run);
    if (world.rank() == 0) {
      bench::print_line(options, {"bare loop", best.name, "symmetric"}, shared.ranks, shape.bytes(), summary);
    }
  }
}

/// One core per rank where there are enough. Returns whether there are.
bool pin(std::size_t rank, std::size_t ranks) {
  cpu_set_t allowed;
  sched_getaffinity(0, sizeof allowed, &allowed);
  if (ranks > static_cast<std::size_t>(CPU_COUNT(&allowed))) {
    return false;
  }
  std::size_t core = 0;
  for (std::size_t seen = 0;; ++core) {
    if (CPU_ISSET(core, &allowed) && seen++ == rank) {
      break;
    }
  }
  CPU_ZERO(&allowed);
  CPU_SET(core, &allowed);
  sched_setaffinity(0, sizeof allowed, &allowed);
  return true;
}

/// A rank that failed leaves the others spinning: they end with it.
int wait_for(const std::vector<pid_t>& children) {
  int result = 0;
  for (std::size_t left = children.size(); left > 0; --left) {
    int status = 0;
    wait(&status);
    if (status != 0 && result == 0) {
      result = 2;
      for (const pid_t child : children) {
        kill(child, SIGKILL);
      }
    }
  }
  return result;
}

}  // namespace

int main(int count, char** words) {
  const bench::Options options = bench::parse_options(count, words);
  if (options.op != "all_reduce" || options.dtype != "float32" || options.ranks < 1 || options.ranks > kMostRanks) {
    bench::fail("the bare loop has all_reduce of float32 alone, on 1 to 32 ranks");
  }
  const Shared shared(options.ranks, *std::max_element(options.sizes.begin(), options.sizes.end()));
  std::vector<pid_t> children;
  for (std::size_t rank = 0; rank < options.ranks; ++rank) {
    const pid_t child = fork();
    if (child < 0) {
      bench::fail("cannot start another process");
    }
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      ForkedWorld world(shared, rank, !pin(rank, options.ranks));
      run_rank(world, shared, options);
      return 0;
    }
    children.push_back(child);
  }
  return wait_for(children);
}
