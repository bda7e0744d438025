#include "tutti/memory/heap.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tutti/memory/arena.h"

namespace tutti::memory {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t kMebibyte = std::size_t{1} << 20;

/// A file with two heaps, and both ranks' views of it.
struct TwoHeaps {
  explicit TwoHeaps(std::size_t bytes_each = 2048 * kMebibyte)
      : arena(Arena::create(4096, 2 * bytes_each).value()),
        layout{.begin = 4096, .bytes_each = bytes_each, .ranks = 2} {}

  FileDescriptor file() const { return FileDescriptor(::fcntl(arena.fd(), F_DUPFD_CLOEXEC, 0)); }

  Arena arena;
  HeapLayout layout;
  Heap first{file(), layout, Rank{0}};
  Heap second{file(), layout, Rank{1}};
};

TEST(Heap, WhatOneRankWritesAPeerReadsAtItsPlace) {
  TwoHeaps heaps;
  auto* skipped = heaps.first.allocate(777).value();
  auto* data = heaps.first.allocate(10'000).value();
  std::memset(data, 42, 10'000);
  const auto place = heaps.first.place_of(data + 3, 9'997);
  ASSERT_TRUE(place.has_value());
  const auto seen = heaps.second.at(Rank{0}, *place, 9'997);
  ASSERT_TRUE(seen.ok());
  EXPECT_NE(seen.value(), data + 3);  // another mapping of the same bytes
  EXPECT_EQ(std::memcmp(seen.value(), data + 3, 9'997), 0);
  heaps.first.free(skipped);
  heaps.first.free(data);
}

TEST(Heap, AForkedChildGetsNothing) {
  TwoHeaps heaps;
  auto* data = heaps.first.allocate(100).value();
  const auto child = ::fork();
  if (child == 0) {
    const auto refused = heaps.first.allocate(100);
    ::_exit(!refused && refused.error().code == Code::unsupported ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  heaps.first.free(data);
}

TEST(Heap, WhatRanksAllocateAlikeLiesApart) {
  TwoHeaps heaps;
  auto* mine = heaps.first.allocate(1 << 20).value();
  auto* theirs = heaps.second.allocate(1 << 20).value();
  const auto place = *heaps.first.place_of(mine, 1);
  EXPECT_EQ(*heaps.second.place_of(theirs, 1), place);
  const auto distance = heaps.first.at(Rank{1}, place, 1).value() - mine;
  EXPECT_NE(distance % (std::ptrdiff_t{1} << 28), 0) << "the same line of the first cache, as far as it can guess";
  heaps.first.free(mine);
  heaps.second.free(theirs);
}

TEST(Heap, OtherMemoryHasNoPlace) {
  TwoHeaps heaps;
  std::byte elsewhere[16];
  EXPECT_EQ(heaps.first.place_of(elsewhere, 16), std::nullopt);
  auto* mine = heaps.first.allocate(16).value();
  EXPECT_EQ(heaps.first.place_of(elsewhere, 16), std::nullopt);
  EXPECT_EQ(heaps.second.place_of(mine, 16), std::nullopt);
  heaps.first.free(mine);
}

TEST(Heap, MemoryIsUsedAgainAndNotReservedAnew) {
  TwoHeaps heaps;
  auto* data = heaps.first.allocate(5 * kMebibyte).value();
  const auto reserved = heaps.first.bytes_reserved();
  for (int i = 0; i < 1000; ++i) {
    heaps.first.free(data);
    data = heaps.first.allocate(5 * kMebibyte).value();
  }
  EXPECT_EQ(heaps.first.bytes_reserved(), reserved);
  EXPECT_GE(heaps.first.bytes_in_use(), 5 * kMebibyte);
  heaps.first.free(data);
  EXPECT_EQ(heaps.first.bytes_in_use(), 0U);
}

TEST(Heap, MuchFreeMemoryGoesBackToTheSystem) {
  TwoHeaps heaps;
  auto* data = heaps.first.allocate(700 * kMebibyte).value();
  EXPECT_GE(heaps.first.bytes_reserved(), 700 * kMebibyte);
  heaps.first.free(data);
  EXPECT_LE(heaps.first.bytes_reserved(), 300 * kMebibyte);
  data = heaps.first.allocate(700 * kMebibyte).value();
  EXPECT_EQ(data[699 * kMebibyte], std::byte{0});
  heaps.first.free(data);
}

TEST(Heap, TooMuchIsAnErrorAndNoEnd) {
  TwoHeaps heaps(64 * kMebibyte);
  EXPECT_THAT(heaps.first.allocate(65 * kMebibyte).error().message, HasSubstr("was asked for"));
  auto* data = heaps.first.allocate(40 * kMebibyte).value();
  const auto more = heaps.first.allocate(40 * kMebibyte);
  ASSERT_FALSE(more.ok());
  EXPECT_EQ(more.error().code, Code::resource_exhausted);
  EXPECT_THAT(more.error().message, HasSubstr("40 MiB are in use"));
  heaps.first.free(data);
}

TEST(Heap, APlaceOutsideIsRefused) {
  TwoHeaps heaps(64 * kMebibyte);
  EXPECT_EQ(heaps.second.at(Rank{0}, 63 * kMebibyte, 2 * kMebibyte).error().code, Code::protocol);
  EXPECT_EQ(heaps.second.at(Rank{0}, ~std::uint64_t{0}, 1).error().code, Code::protocol);
}

TEST(Heap, ALimitOnAddressesIsNamed) {
  const auto child = ::fork();
  if (child == 0) {
    TwoHeaps heaps;
    const rlimit few{.rlim_cur = 512 * kMebibyte, .rlim_max = 512 * kMebibyte};
    ::setrlimit(RLIMIT_AS, &few);
    const auto data = heaps.first.allocate(1);
    ::_exit(!data.ok() && data.error().message.find("ulimit -v") != std::string::npos ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they need more addresses than that themselves
  EXPECT_EQ(status, 0);
#endif
}

TEST(Heap, AForkedChildFreesNothingOfItsParent) {
  TwoHeaps heaps;
  auto* data = heaps.first.allocate(600 * kMebibyte).value();
  data[599 * kMebibyte] = std::byte{7};
  const auto child = ::fork();
  if (child == 0) {
    heaps.first.free(data);  // would give the memory back to the system
    ::_exit(0);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(data[599 * kMebibyte], std::byte{7});
  heaps.first.free(data);
}

}  // namespace
}  // namespace tutti::memory
