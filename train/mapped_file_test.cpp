#include "train/mapped_file.h"

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
