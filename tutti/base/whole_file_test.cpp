#include "tutti/base/whole_file.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti {
namespace {

using testing::HasSubstr;

std::string read(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

class WholeFile : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove_all(folder_); }
  const std::string folder_ = testing::TempDir() + "whole-" + std::to_string(::getpid());
};

TEST_F(WholeFile, ReplacesWhatWasThere) {
  const auto path = folder_ + "/deeper/file";
  ASSERT_TRUE(write_whole(path, "the first, which is longer").ok());
  ASSERT_TRUE(write_whole(path, "the second").ok());
  EXPECT_EQ(read(path), "the second");
  const std::filesystem::directory_iterator files(folder_ + "/deeper");
  EXPECT_EQ(std::distance(begin(files), end(files)), 1) << "something is left behind";
}

TEST_F(WholeFile, WhatGoesWrongLeavesTheOldOne) {
  std::filesystem::create_directories(folder_ + "/taken/inside");
  const auto status = write_whole(folder_ + "/taken", "text");
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().message, testing::HasSubstr("cannot write: it is a folder"));
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/taken/inside"));
  std::ofstream(folder_ + "/file") << "old";
  EXPECT_THAT(write_whole(folder_ + "/file/x", "text").error().message, testing::HasSubstr("cannot make the folder"));
  EXPECT_EQ(read(folder_ + "/file"), "old");
}

/// While it lives, no file of this process grows past so many bytes: to a writer the same as a disk that is full.
class NoRoom {
 public:
  explicit NoRoom(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  NoRoom(const NoRoom&) = delete;
  NoRoom& operator=(const NoRoom&) = delete;
  ~NoRoom() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    (void)std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int);
};

TEST_F(WholeFile, WhatIsNoFileStays) {
  std::filesystem::create_directories(folder_);
  const auto pipe = folder_ + "/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(write_whole(pipe, "text").error().message, testing::HasSubstr("pipe: cannot write: it is no file"));
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
}

TEST_F(WholeFile, WithoutRoomTheOldOneStaysAndNothingElse) {
  const auto path = folder_ + "/file";
  ASSERT_TRUE(write_whole(path, "old").ok());
  {
    const NoRoom limit(1001);
    const auto status = write_whole(path, std::string(5003, 'x'));
    ASSERT_FALSE(status.ok());
    EXPECT_THAT(status.error().message, testing::HasSubstr("/file: cannot write: "));
  }
  EXPECT_EQ(read(path), "old");
  const std::filesystem::directory_iterator files(folder_);
  EXPECT_EQ(std::distance(begin(files), end(files)), 1) << "something is left behind";
}

TEST_F(WholeFile, IsReadToItsEnd) {
  const std::string text(200003, 'x');
  ASSERT_TRUE(write_whole(folder_ + "/file", text).ok());
  EXPECT_EQ(read_whole(folder_ + "/file").value(), text);
  ASSERT_TRUE(write_whole(folder_ + "/empty", "").ok());
  EXPECT_EQ(read_whole(folder_ + "/empty").value(), "");
}

TEST_F(WholeFile, WhatHasNoEndOrIsTooLongIsNotRead) {
  std::filesystem::create_directories(folder_);
  EXPECT_THAT(read_whole("/dev/zero").error().message, HasSubstr("cannot read /dev/zero: it is no file"));
  EXPECT_THAT(read_whole(folder_).error().message, HasSubstr("it is a folder"));
  EXPECT_EQ(read_whole(folder_ + "/none").error().code, Code::not_found);
  ASSERT_EQ(::mkfifo((folder_ + "/pipe").c_str(), 0600), 0);
  EXPECT_THAT(read_whole(folder_ + "/pipe").error().message, HasSubstr("it is no file"));
  std::ofstream(folder_ + "/long") << "x";
  std::filesystem::resize_file(folder_ + "/long", kLongestFile);
  EXPECT_EQ(read_whole(folder_ + "/long").value().size(), kLongestFile);
  std::filesystem::resize_file(folder_ + "/long", kLongestFile + 1);
  EXPECT_THAT(read_whole(folder_ + "/long").error().message, HasSubstr("/long: longer than 32 MiB"));
}

TEST_F(WholeFile, WhetherItCanBeWrittenIsKnownBefore) {
  ASSERT_TRUE(write_whole(folder_ + "/file", "old").ok());
  EXPECT_TRUE(can_write_whole(folder_ + "/file").ok());
  EXPECT_TRUE(can_write_whole(folder_ + "/deeper/new").ok());
  EXPECT_EQ(read(folder_ + "/file"), "old");
  EXPECT_TRUE(std::filesystem::is_empty(folder_ + "/deeper"));
  EXPECT_THAT(can_write_whole(folder_).error().message, HasSubstr("cannot write: it is a folder"));
  EXPECT_THAT(can_write_whole("/dev/full").error().message, HasSubstr("cannot write: it is no file"));
  EXPECT_THAT(can_write_whole("/proc/nowhere/file").error().message, HasSubstr("cannot make the folder"));
  EXPECT_THAT(can_write_whole("/proc/new").error().message, HasSubstr("/proc/new: cannot write: "));
}

}  // namespace
}  // namespace tutti
