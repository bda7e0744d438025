#include "train/mapped_file.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "train/test_folder.h"

namespace tutti::train {
namespace {

using testing::HasSubstr;

class MappedFileTest : public testing::Test {
 protected:
  static Result<std::string> text(const MappedFile& file, std::size_t begin, std::size_t count) {
    std::string bytes(count, '?');
    const auto status = file.copy(begin, std::as_writable_bytes(std::span(bytes)));
    return status ? Result<std::string>(bytes) : status.error();
  }
  TestFolder folder_;
};

TEST_F(MappedFileTest, HasTheFilesBytes) {
  const auto file = MappedFile::open(folder_.write("a", "0123456789"));
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ(file.value().size(), 10U);
  EXPECT_EQ(text(file.value(), 3, 7).value(), "3456789");
  EXPECT_EQ(text(file.value(), 10, 0).value(), "");
}

TEST_F(MappedFileTest, AnEmptyFileIsAFile) {
  const auto file = MappedFile::open(folder_.write("empty", ""));
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file.value().size(), 0U);
  EXPECT_TRUE(file.value().copy(0, {}).ok());
}

TEST_F(MappedFileTest, WhatIsNoFileIsAnError) {
  EXPECT_EQ(MappedFile::open(folder_ / "none").error().code, Code::not_found);
  EXPECT_THAT(MappedFile::open(folder_ / "none").error().message, HasSubstr("none: cannot read: No such file"));
  EXPECT_THAT(MappedFile::open(folder_.path()).error().message, HasSubstr("is no file"));
}

TEST_F(MappedFileTest, AFileThatShrinksIsAnErrorAndNoSignal) {
  const auto path = folder_.write("large", std::string(100'003, 'x'));
  const auto file = MappedFile::open(path);
  ASSERT_TRUE(text(file.value(), 99'000, 1003).ok());
  std::filesystem::resize_file(path, 5001);
  EXPECT_EQ(text(file.value(), 0, 5001).value(), std::string(5001, 'x')) << "what is there can be read";
  for (const std::size_t begin : {0UL, 5000UL, 99'000UL}) {
    const auto read = text(file.value(), begin, 100'003 - begin);
    ASSERT_FALSE(read.ok()) << begin;
    EXPECT_THAT(read.error().message, HasSubstr("has become shorter while it was in use; it had 100003 bytes"));
  }
  EXPECT_THAT(file.value().unchanged().error().message, HasSubstr("has become shorter"));
}

/// As some containers do.
bool forbid_process_vm_readv() {
  std::array<sock_filter, 4> program{
      sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{program.size(), program.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

TEST_F(MappedFileTest, WhereTheKernelMayNotReadItSizesAreLookedUp) {
  const auto path = folder_.write("large", std::string(100'003, 'x'));
  const auto file = MappedFile::open(path);
  const auto child = ::fork();  // what is forbidden stays so
  if (child == 0) {
    const bool forbidden = forbid_process_vm_readv();
    const bool before = text(file.value(), 99'000, 1003).ok();
    std::filesystem::resize_file(path, 5001);
    const bool after = text(file.value(), 99'000, 1003).ok();
    ::_exit(!forbidden ? 2 : before && !after ? 0 : 1);
  }
  int status = 1;
  ::waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 2) {
    GTEST_SKIP() << "this process may not forbid itself anything";
  }
  EXPECT_EQ(status, 0);
}

TEST_F(MappedFileTest, AFileThatIsReplacedStaysWhatItWas) {
  const auto path = folder_.write("a", "the old one");
  const auto file = MappedFile::open(path);
  std::filesystem::rename(folder_.write("b", "new"), path);
  EXPECT_EQ(text(file.value(), 0, 11).value(), "the old one");
  EXPECT_TRUE(file.value().unchanged().ok());
  std::filesystem::remove(path);
  EXPECT_EQ(text(file.value(), 4, 3).value(), "old");
  EXPECT_TRUE(file.value().unchanged().ok());
}

TEST_F(MappedFileTest, WritingInPlaceIsNoticed) {
  const auto path = folder_.write("a", "before");
  const auto file = MappedFile::open(path);
  ASSERT_TRUE(file.value().unchanged().ok());
  std::filesystem::last_write_time(path, std::filesystem::last_write_time(path) + std::chrono::seconds(3));
  EXPECT_THAT(file.value().unchanged().error().message, HasSubstr("has been written to"));
}

TEST_F(MappedFileTest, CanBeMoved) {
  std::vector<MappedFile> files;
  for (const char* name : {"a", "b", "c"}) {
    files.push_back(MappedFile::open(folder_.write(name, name)).value());
  }
  files.erase(files.begin());
  EXPECT_EQ(text(files[1], 0, 1).value(), "c");
}

}  // namespace
}  // namespace tutti::train
