#include "tutti/base/whole_file.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti {
namespace {

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
  EXPECT_THAT(status.error().message, testing::HasSubstr("cannot put the new one in its place"));
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/taken/inside"));
  std::ofstream(folder_ + "/file") << "old";
  EXPECT_THAT(write_whole(folder_ + "/file/x", "text").error().message, testing::HasSubstr("cannot make the folder"));
  EXPECT_EQ(read(folder_ + "/file"), "old");
}

}  // namespace
}  // namespace tutti
