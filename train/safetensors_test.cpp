#include "train/safetensors.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <numeric>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "train/test_folder.h"
#include "tutti/base/file_descriptor.h"

namespace tutti::train {
namespace {

using testing::HasSubstr;

class SafetensorsTest : public testing::Test {
 protected:
  SafetensorsTest() { std::iota(floats_.begin(), floats_.end(), 1.F); }

  std::vector<Block> blocks() const {
    return {{"odd", Dtype::u8, {3}, std::as_bytes(std::span(bytes_))},
            {"weight", Dtype::f32, {2, 3}, std::as_bytes(std::span(floats_))},
            {"empty", Dtype::f64, {0, 7}, {}},
            {"scalar", Dtype::bf16, {}, std::as_bytes(std::span(bytes_)).first(2)}};
  }
  /// A file from its parts.
  std::string file(const std::string& header, const std::string& data) const {
    const std::uint64_t length = header.size();
    std::string bytes(8, '\0');
    std::memcpy(bytes.data(), &length, 8);
    return folder_.write("file", bytes + header + data);
  }
  static std::string text(const Safetensors& opened, const std::string& name) {
    const auto* const block = opened.find(name);
    std::string bytes(block->bytes, '?');
    EXPECT_TRUE(opened.read(*block, std::as_writable_bytes(std::span(bytes))).ok());
    return bytes;
  }

  TestFolder folder_;
  const std::string bytes_ = "abc";
  std::vector<float> floats_ = std::vector<float>(6);
};

TEST_F(SafetensorsTest, WhatIsWrittenIsRead) {
  const auto path = folder_ / "deeper/model.safetensors";
  const auto written = write_safetensors(path, blocks(), {{"format", "pt"}, {"\xc3\xa4\"", "\n"}});
  ASSERT_TRUE(written.ok()) << written.error().message;
  const auto opened = Safetensors::open(path);
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  EXPECT_EQ(opened.value().blocks().size(), 4U);
  EXPECT_EQ(opened.value().metadata(), (Metadata{{"format", "pt"}, {"\xc3\xa4\"", "\n"}}));
  const auto* const weight = opened.value().find("weight");
  ASSERT_NE(weight, nullptr);
  EXPECT_EQ(weight->dtype, Dtype::f32);
  EXPECT_EQ(weight->shape, (std::vector<std::int64_t>{2, 3}));
  std::vector<float> floats(6);
  ASSERT_TRUE(opened.value().read(*weight, std::as_writable_bytes(std::span(floats))).ok());
  EXPECT_EQ(floats, floats_);
  EXPECT_EQ(text(opened.value(), "odd"), "abc");
  EXPECT_EQ(text(opened.value(), "scalar"), "ab");
  EXPECT_EQ(text(opened.value(), "empty"), "");
  EXPECT_EQ(opened.value().find("weights"), nullptr);
  const std::filesystem::directory_iterator files(folder_ / "deeper");
  EXPECT_EQ(std::distance(begin(files), end(files)), 1) << "something is left behind";
}

TEST_F(SafetensorsTest, BlocksBeginWhereTheirTypeMay) {
  ASSERT_TRUE(write_safetensors(folder_ / "a", blocks()).ok());
  const auto bytes = TestFolder::read(folder_ / "a");
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  EXPECT_EQ(length % 8, 0U);
  const auto opened = Safetensors::open(folder_ / "a");
  for (const auto& block : opened.value().blocks()) {
    EXPECT_EQ(block.begin % bytes_of(block.dtype), 0U) << block.name;
  }
}

TEST_F(SafetensorsTest, AFileOfNothingIsAFile) {
  ASSERT_TRUE(write_safetensors(folder_ / "a", {}).ok());
  EXPECT_TRUE(Safetensors::open(folder_ / "a").value().blocks().empty());
}

TEST_F(SafetensorsTest, BlocksMayBeginAnywhere) {
  const auto path = file(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                         R"("b":{"dtype":"F32","shape":[1],"data_offsets":[1,5]}})",
                         "xABCD");
  EXPECT_EQ(text(Safetensors::open(path).value(), "b"), "ABCD");
}

TEST_F(SafetensorsTest, WhatCannotBeWrittenLeavesTheOldFile) {
  ASSERT_TRUE(write_safetensors(folder_ / "a", blocks()).ok());
  const auto before = TestFolder::read(folder_ / "a");
  auto wrong = blocks();
  wrong[1].shape = {2, 4};
  EXPECT_THAT(write_safetensors(folder_ / "a", wrong).error().message, HasSubstr("'weight' has 24 bytes"));
  wrong[1] = wrong[0];
  EXPECT_THAT(write_safetensors(folder_ / "a", wrong).error().message, HasSubstr("two blocks cannot have the name"));
  wrong = blocks();
  wrong[0].name = "\xff";
  EXPECT_THAT(write_safetensors(folder_ / "a", wrong).error().message, HasSubstr("must be UTF-8"));
  wrong[0].name = "__metadata__";
  EXPECT_FALSE(write_safetensors(folder_ / "a", wrong).ok());
  EXPECT_EQ(TestFolder::read(folder_ / "a"), before);
}

TEST_F(SafetensorsTest, AFullDiskIsAnErrorAndLeavesTheOldFile) {
  ASSERT_TRUE(write_safetensors(folder_ / "a", blocks()).ok());
  const auto before = TestFolder::read(folder_ / "a");
  const std::string large(100'003, 'x');
  const auto child = ::fork();  // the limit is a process's
  if (child == 0) {
    const rlimit limit{50'000, 50'000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    std::signal(SIGXFSZ, SIG_IGN);
    const Block block{"large", Dtype::u8, {100'003}, std::as_bytes(std::span(large))};
    const auto written = write_safetensors(folder_ / "a", {&block, 1});
    ::_exit(!written.ok() && written.error().code == Code::resource_exhausted ? 0 : 1);
  }
  int status = 1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(TestFolder::read(folder_ / "a"), before);
  const std::filesystem::directory_iterator files(folder_.path());
  EXPECT_EQ(std::distance(begin(files), end(files)), 1) << "something is left behind";
}

TEST_F(SafetensorsTest, AFileThatIsCutWhileOpenIsAnError) {
  const std::string large(100'003, 'x');
  const Block block{"large", Dtype::u8, {100'003}, std::as_bytes(std::span(large))};
  ASSERT_TRUE(write_safetensors(folder_ / "a", {&block, 1}).ok());
  const auto opened = Safetensors::open(folder_ / "a");
  std::filesystem::resize_file(folder_ / "a", 4096);
  std::string bytes(large.size(), '?');
  EXPECT_THAT(
      opened.value().read(*opened.value().find("large"), std::as_writable_bytes(std::span(bytes))).error().message,
      HasSubstr("has become shorter"));
}

TEST_F(SafetensorsTest, LengthsAreChecked) {
  const auto opens = [&](std::string_view bytes) { return Safetensors::open(folder_.write("f", bytes)); };
  EXPECT_THAT(opens("").error().message, HasSubstr("it has 0 bytes"));
  EXPECT_THAT(opens("1234567").error().message, HasSubstr("it has 7 bytes"));
  EXPECT_THAT(opens(std::string("\x03\0\0\0\0\0\0\0{}", 10)).error().message, HasSubstr("header would have 3 bytes"));
  EXPECT_THAT(opens(std::string(8, '\xff') + "{}").error().message,
              HasSubstr("header would have 18446744073709551615"));
  EXPECT_TRUE(opens(std::string("\x02\0\0\0\0\0\0\0{}", 10)).ok());
  EXPECT_THAT(Safetensors::open(folder_ / "none").error().message, HasSubstr("No such file"));
  // A header that is too long is not read, however long the file.
  const auto path = folder_.write("long", std::string("\x01\xe1\xf5\x05\0\0\0\0", 8));  // 100,000,001
  std::filesystem::resize_file(path, 200'000'000);
  EXPECT_THAT(Safetensors::open(path).error().message, HasSubstr("100000000 at most"));
}

/// Writes a valid file, damages it in one to four places, and opens it: 20,000 times. A sanitizer tells what a
/// process that goes on would not.
TEST_F(SafetensorsTest, DamagedFilesNeverCrash) {
  ASSERT_TRUE(write_safetensors(folder_ / "a", blocks(), {{"format", "pt"}}).ok());
  const auto whole = TestFolder::read(folder_ / "a");
  constexpr std::string_view kLikely = "{}[]\",:0123456789-eE.\\ \0\xff";
  std::mt19937 random(20'000);
  const auto below = [&](std::size_t end) { return std::uniform_int_distribution<std::size_t>(0, end - 1)(random); };
  const FileDescriptor memory(::memfd_create("damaged", MFD_CLOEXEC));  // a disk would take minutes
  const auto path = "/proc/self/fd/" + std::to_string(memory.get());
  int opened = 0;
  for (int round = 0; round < 20'000; ++round) {
    auto bytes = whole;
    for (auto changes = below(4) + 1; changes > 0 && !bytes.empty(); --changes) {
      const auto at = below(bytes.size());
      switch (below(5)) {
        case 0: bytes[at] = static_cast<char>(below(256)); break;
        case 1: bytes[at] = kLikely[below(kLikely.size())]; break;
        case 2: bytes.resize(at); break;
        case 3: bytes.erase(at, below(9)); break;
        default: bytes.insert(at, bytes.substr(below(bytes.size()), below(40))); break;
      }
    }
    ASSERT_EQ(::ftruncate(memory.get(), 0), 0);
    ASSERT_EQ(::pwrite(memory.get(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
    const auto file = Safetensors::open(path);
    if (!file) {
      EXPECT_FALSE(file.error().message.empty());
      continue;
    }
    ++opened;
    for (const auto& block : file.value().blocks()) {
      EXPECT_EQ(text(file.value(), block.name).size(), block.bytes);
    }
  }
  EXPECT_GT(opened, 100) << "damage to the data alone is not seen";
  EXPECT_LT(opened, 10'000);
}

}  // namespace
}  // namespace tutti::train
