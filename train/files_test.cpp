#include "train/files.h"

#include <unistd.h>

#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "train/test_folder.h"
#include "tutti/base/file_descriptor.h"

namespace tutti::train {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class Files : public testing::Test {
 protected:
  TestFolder folder_;
};

TEST_F(Files, AreFoundInFoldersAndSorted) {
  folder_.write("b.txt", "b");
  folder_.write("a/z.txt", "z");
  folder_.write("a/c/d.txt", "d");
  folder_.write("B.txt", "B");
  const auto files = text_files(folder_.path());
  ASSERT_TRUE(files.ok()) << files.error().message;
  EXPECT_THAT(files.value(),
              ElementsAre(folder_ / "B.txt", folder_ / "a/c/d.txt", folder_ / "a/z.txt", folder_ / "b.txt"));
}

TEST_F(Files, HiddenBinaryEmptyOnesAndLinksAreLeftOut) {
  folder_.write("text", "with \xc3\xa4 and \xff");
  folder_.write(".hidden", "text");
  folder_.write(".git/config", "text");
  folder_.write("program", std::string("ELF\0\1", 5));
  folder_.write("late", std::string(8191, 'x').append(1, '\0'));
  folder_.write("empty", "");
  TestFolder::read(folder_ / "text");
  std::filesystem::create_directory(folder_ / "inside");
  std::filesystem::create_symlink(folder_ / "text", folder_ / "inside/link");
  std::filesystem::create_directory_symlink("/etc", folder_ / "inside/out");
  std::filesystem::create_directory_symlink(folder_.path(), folder_ / "inside/circle");
  const auto files = text_files(folder_.path());
  ASSERT_TRUE(files.ok()) << files.error().message;
  EXPECT_THAT(files.value(), ElementsAre(folder_ / "text"));
}

TEST_F(Files, WhatIsNoFolderIsAnError) {
  EXPECT_THAT(text_files(folder_ / "none").error().message, HasSubstr("none: cannot read: No such file"));
  EXPECT_FALSE(text_files(folder_.write("a", "a")).ok());
}

TEST_F(Files, APipeIsReadToItsEnd) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const FileDescriptor reading(ends[0]);
  std::string sent(300'007, 'x');
  sent.back() = 'y';
  std::jthread writer([&sent, writing = FileDescriptor(ends[1])] {
    for (std::size_t at = 0; at < sent.size();) {
      at += static_cast<std::size_t>(std::max<ssize_t>(0, ::write(writing.get(), sent.data() + at, sent.size() - at)));
    }
  });
  EXPECT_EQ(read_to_end(reading.get(), "standard input").value(), sent);
  EXPECT_THAT(read_to_end(-1, "standard input").error().message, HasSubstr("standard input: cannot read: Bad file"));
}

}  // namespace
}  // namespace tutti::train
