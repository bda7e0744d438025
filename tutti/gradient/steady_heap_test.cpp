#include "tutti/gradient/steady_heap.h"

#include <sys/resource.h>

#include <cstdlib>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

namespace tutti::gradient {
namespace {

long faults() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

/// As a step does: all blocks are needed at once, then none.
void take_and_free() {
  constexpr std::size_t kBytes = std::size_t{4} << 20;
  std::vector<void*> blocks;
  for (int i = 0; i < 16; ++i) {
    blocks.push_back(std::malloc(kBytes));
    std::memset(blocks.back(), 1, kBytes);
  }
  for (auto* const block : blocks) {
    std::free(block);
  }
}

TEST(SteadyHeap, TheNextStepFindsWhatTheLastOneFreed) {
  if (!may_keep_freed_memory()) {
    GTEST_SKIP() << "the environment says how malloc is to behave";
  }
  keep_freed_memory();
  take_and_free();
  const auto before = faults();
  take_and_free();
  EXPECT_LT(faults() - before, 1000) << "of 16384 pages";
}

TEST(SteadyHeap, TheEnvironmentHasTheLastWord) {
  for (const auto* const name : {"MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES"}) {
    ::unsetenv(name);  // malloc has read them long ago
  }
  EXPECT_TRUE(may_keep_freed_memory());
  ::setenv("MALLOC_TRIM_THRESHOLD_", "100000", 1);
  EXPECT_FALSE(may_keep_freed_memory());
  ::unsetenv("MALLOC_TRIM_THRESHOLD_");
  ::setenv("GLIBC_TUNABLES", "glibc.malloc.check=0:glibc.malloc.mmap_threshold=4096", 1);
  EXPECT_FALSE(may_keep_freed_memory());
  ::setenv("GLIBC_TUNABLES", "glibc.malloc.check=0", 1);
  EXPECT_TRUE(may_keep_freed_memory());
  ::unsetenv("GLIBC_TUNABLES");
}

}  // namespace
}  // namespace tutti::gradient
