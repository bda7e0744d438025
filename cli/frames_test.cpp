#include "cli/frames.h"

#include <gmock/gmock.h>

namespace tutti::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

Share odd_share() {
  return {.command = {"./p", "", "a b\n", "\xff\xfe"},
          .variables = {{"A", "b=c"}, {"EMPTY", ""}},
          .directory = "/some where",
          .first = Rank{3},
          .count = 2,
          .world_size = 7,
          .bind = plan::Bind::numa};
}

TEST(Frames, ArriveWholeHoweverTheyAreCut) {
  const std::vector<Frame> sent{
      {FrameType::kill, ""}, {FrameType::output, std::string(1003, 'x')}, {FrameType::says, "y"}};
  std::string bytes;
  for (const Frame& frame : sent) {
    bytes += encode(frame);
  }
  for (const std::size_t step : {1, 3, 7, 1000, 100000}) {
    FrameReader reader;
    std::vector<Frame> got;
    for (std::size_t at = 0; at < bytes.size(); at += step) {
      const auto frames = reader.feed(std::string_view(bytes).substr(at, step));
      ASSERT_TRUE(frames.ok());
      got.insert(got.end(), frames.value().begin(), frames.value().end());
    }
    EXPECT_EQ(got, sent) << step;
  }
}

TEST(Frames, ALengthBeyondTheLimitIsRefusedAtOnce) {
  FrameReader reader;
  const auto frames = reader.feed(std::string("\xff\xff\xff\xff\x01", 5));
  ASSERT_FALSE(frames.ok());
  EXPECT_THAT(frames.error().message, HasSubstr("4294967295"));
}

TEST(Share, ComesThroughUnchanged) {
  const Share sent = odd_share();
  const auto got = decode_share(encode_share(sent));
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(got.value().command, sent.command);
  EXPECT_EQ(got.value().variables, sent.variables);
  EXPECT_EQ(got.value().directory, sent.directory);
  EXPECT_EQ(got.value().first, sent.first);
  EXPECT_EQ(got.value().count, 2);
  EXPECT_EQ(got.value().world_size, 7);
  EXPECT_EQ(got.value().bind, plan::Bind::numa);
}

TEST(Share, CutShortAnywhereIsRefused) {
  const std::string whole = encode_share(odd_share());
  for (std::size_t length = 0; length < whole.size(); ++length) {
    EXPECT_FALSE(decode_share(std::string_view(whole).substr(0, length)).ok()) << length;
  }
}

TEST(Share, NonsenseIsRefused) {
  for (const auto& change : std::vector<void (*)(Share&)>{
           [](Share& share) { share.command.clear(); }, [](Share& share) { share.count = 0; },
           [](Share& share) { share.first = Rank{6}; }, [](Share& share) { share.first = Rank{-1}; },
           [](Share& share) { share.bind = static_cast<plan::Bind>(9); }}) {
    Share share = odd_share();
    change(share);
    EXPECT_FALSE(decode_share(encode_share(share)).ok());
  }
}

TEST(Payload, ReadingBeyondTheEndIsHarmless) {
  PayloadReader reader("\x05");
  EXPECT_EQ(reader.number(), 0U);
  EXPECT_THAT(reader.text(), IsEmpty());
  EXPECT_FALSE(reader.ok());
}

}  // namespace
}  // namespace tutti::cli
