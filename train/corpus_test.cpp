#include "train/corpus.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "train/test_folder.h"

namespace tutti::train {
namespace {

using testing::HasSubstr;

class CorpusTest : public testing::Test {
 protected:
  static std::string text(const Corpus& corpus, std::int64_t begin, std::int64_t count) {
    std::vector<std::uint8_t> bytes(static_cast<std::size_t>(count), '?');
    const auto status = corpus.copy(begin, bytes);
    return status ? std::string(bytes.begin(), bytes.end()) : status.error().message;
  }
  static std::string all(const Corpus& corpus) { return text(corpus, 0, corpus.size()); }
  static std::string why(const std::vector<std::string>& paths) {
    const auto corpus = Corpus::open(paths);
    return corpus ? "no error" : corpus.error().message;
  }
  TestFolder folder_;
};

TEST_F(CorpusTest, IsOneStreamWithAZeroAfterEachDocument) {
  folder_.write("f/b", "second");
  folder_.write("f/a", "first");
  const auto last = folder_.write("last", "third");
  const auto corpus = Corpus::open({folder_ / "f", last});
  ASSERT_TRUE(corpus.ok()) << corpus.error().message;
  const std::string expected("first\0second\0third\0", 19);
  EXPECT_EQ(all(corpus.value()), expected);
  EXPECT_EQ(corpus.value().documents(), 3);
  for (std::int64_t begin = 0; begin <= 19; ++begin) {
    for (std::int64_t count = 0; begin + count <= 19; ++count) {
      EXPECT_EQ(text(corpus.value(), begin, count),
                expected.substr(static_cast<std::size_t>(begin), static_cast<std::size_t>(count)));
    }
  }
}

TEST_F(CorpusTest, MappedAndReadFilesAreTheSameStream) {
  const std::string large(70'001, 'l');
  const auto corpus = Corpus::open({folder_.write("a", "small"), folder_.write("b", large), folder_.write("c", "end")});
  ASSERT_TRUE(corpus.ok()) << corpus.error().message;
  EXPECT_EQ(all(corpus.value()), std::string("small\0", 6) + large + std::string("\0end\0", 5));
  EXPECT_EQ(text(corpus.value(), 70'005, 5), std::string("ll\0en", 5));
}

TEST_F(CorpusTest, WhatIsReadIsNotCutAndWhatIsMappedIsAnError) {
  const auto small = folder_.write("a", "small");
  const auto large = folder_.write("b", std::string(100'003, 'l'));
  const auto corpus = Corpus::open({small, large});
  ASSERT_TRUE(corpus.value().unchanged().ok());
  std::filesystem::resize_file(small, 0);
  EXPECT_TRUE(corpus.value().unchanged().ok());
  std::filesystem::resize_file(large, 4096);
  EXPECT_EQ(text(corpus.value(), 0, 8), std::string("small\0ll", 8));
  EXPECT_THAT(text(corpus.value(), 90'000, 129), HasSubstr("b: has become shorter while it was in use"));
  EXPECT_FALSE(corpus.value().unchanged().ok());
}

TEST_F(CorpusTest, PipesAreReadWhole) {
  const auto pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const std::jthread writer([&] { std::ofstream(pipe) << "from a pipe"; });
  EXPECT_EQ(all(Corpus::open({pipe}).value()), std::string("from a pipe\0", 12));
}

TEST_F(CorpusTest, StandardInputIsReadWhole) {
  const auto path = folder_.write("in", "from standard input");
  const auto child = ::fork();  // standard input is a process's: only a process of its own can have it replaced
  if (child == 0) {
    ::dup2(::open(path.c_str(), O_RDONLY), STDIN_FILENO);
    const auto corpus = Corpus::open({"-"});
    ::_exit(corpus.ok() && all(corpus.value()) == std::string("from standard input\0", 20) ? 0 : 1);
  }
  int status = 1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST_F(CorpusTest, WhatIsWrongWithPathsIsASentence) {
  EXPECT_EQ(why({}), "no data: name files or folders, or - for standard input");
  EXPECT_EQ(why({"-", "-"}), "standard input (-) can be read only once");
  EXPECT_THAT(why({folder_ / "none"}), HasSubstr("none: cannot read: No such file or directory"));
  EXPECT_THAT(why({folder_.write("empty", "")}), HasSubstr("empty: is empty"));
  EXPECT_THAT(why({"/dev/null"}), HasSubstr("/dev/null: is neither a file nor a folder"));
  EXPECT_THAT(why({folder_.path()}), HasSubstr("no text in this folder"));
  EXPECT_THAT(why({"/dev/null/x"}), HasSubstr("cannot read: Not a directory"));
  const auto secret = folder_.write("secret", "text");
  std::filesystem::permissions(secret, std::filesystem::perms::none);
  if (::geteuid() != 0) {
    EXPECT_THAT(why({secret}), HasSubstr("secret: cannot read: Permission denied"));
  }
}

TEST_F(CorpusTest, TooLittleTextIsASentence) {
  const auto corpus = Corpus::of({std::string(99, 'x')});
  EXPECT_TRUE(corpus.check(99, 0).ok());
  EXPECT_EQ(corpus.check(100, 0).error().message,
            "the data has 100 bytes, and a context of 100 needs 101: give more text or a shorter context");
  EXPECT_TRUE(corpus.check(9, 0.1).ok());
  EXPECT_THAT(corpus.check(10, 0.1).error().message, HasSubstr("no stretch of 11 bytes is left to evaluate"));
  EXPECT_THAT(corpus.check(60, 0.5).error().message, HasSubstr("no stretch of 61 bytes is left to train on"));
}

}  // namespace
}  // namespace tutti::train
