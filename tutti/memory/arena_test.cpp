#include "tutti/memory/arena.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::memory {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t kOdd = 4096 * 3 + 17;

FileDescriptor duplicate(int fd) { return FileDescriptor(::fcntl(fd, F_DUPFD_CLOEXEC, 0)); }

TEST(Arena, IsSeenByEveryoneWhoMapsIt) {
  auto first = Arena::create(kOdd).value();
  auto second = Arena::attach(duplicate(first.fd()), kOdd).value();
  EXPECT_NE(first.data(), second.data());
  EXPECT_EQ(second.data()[kOdd - 1], std::byte{0});
  first.data()[kOdd - 1] = std::byte{42};
  EXPECT_EQ(second.data()[kOdd - 1], std::byte{42});
}

TEST(Arena, IsSharedWithAChildProcess) {
  auto arena = Arena::create(kOdd).value();
  const pid_t child = ::fork();
  if (child == 0) {
    arena.data()[7] = std::byte{7};
    ::_exit(0);
  }
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_EQ(arena.data()[7], std::byte{7});
}

TEST(Arena, APrivateOneIsNotSharedWithAChildProcess) {
  auto arena = Arena::create_private(kOdd).value();
  const pid_t child = ::fork();
  if (child == 0) {
    arena.data()[7] = std::byte{7};
    ::_exit(0);
  }
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_EQ(arena.data()[7], std::byte{0});
}

TEST(Arena, OutlivesItsMaker) {
  auto made = std::make_unique<Arena>(Arena::create(kOdd).value());
  made->data()[3] = std::byte{3};
  auto attached = Arena::attach(duplicate(made->fd()), kOdd).value();
  made.reset();
  EXPECT_EQ(attached.data()[3], std::byte{3});
}

TEST(Arena, MovesWithoutUnmapping) {
  auto first = Arena::create_private(kOdd).value();
  first.data()[5] = std::byte{5};
  Arena second = std::move(first);
  EXPECT_EQ(second.data()[5], std::byte{5});
  EXPECT_EQ(second.fd(), -1);
}

TEST(Arena, CannotShrinkUnderAPeer) {
  const auto arena = Arena::create(kOdd).value();
  EXPECT_NE(::ftruncate(arena.fd(), 1), 0);
}

TEST(Arena, RefusesWhatIsNoArena) {
  const auto arena = Arena::create(kOdd).value();
  EXPECT_THAT(Arena::attach(duplicate(arena.fd()), kOdd + 1).error().message, HasSubstr("not shared memory of"));
  FileDescriptor foreign(::memfd_create("foreign", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(foreign.get(), kOdd), 0);
  EXPECT_EQ(Arena::attach(std::move(foreign), kOdd).error().code, Code::protocol);
  EXPECT_FALSE(Arena::attach(FileDescriptor(), kOdd).ok());
}

TEST(Arena, ALimitOnFilesIsAnErrorAndNotASignal) {
  const pid_t child = ::fork();
  if (child == 0) {
    rlimit limit{};
    ::getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = 1000;
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const auto arena = Arena::create(1 << 20);
    const bool said = !arena && arena.error().message.find("ulimit -f") != std::string::npos;
    ::_exit(said && arena.error().code == Code::resource_exhausted ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(Arena, FullMemoryIsAnErrorAtTheStart) {
  const auto arena = Arena::create(std::size_t{1} << 50);
  ASSERT_FALSE(arena.ok());
  EXPECT_EQ(arena.error().code, Code::resource_exhausted);
  EXPECT_THAT(arena.error().message, HasSubstr("use fewer ranks or free memory"));
  EXPECT_EQ(Arena::create(0).error().code, Code::invalid_argument);
}

TEST(Arena, LeavesNoDescriptorBehind) {
  const auto open_descriptors = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator{});
  };
  const auto before = open_descriptors();
  for (int i = 0; i < 17; ++i) {
    auto arena = Arena::create(kOdd).value();
    auto peer = Arena::attach(duplicate(arena.fd()), kOdd).value();
  }
  EXPECT_EQ(open_descriptors(), before);
}

}  // namespace
}  // namespace tutti::memory
