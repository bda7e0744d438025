#include "tutti/rendezvous/wire.h"

#include <cstring>
#include <limits>

#include <gmock/gmock.h>

namespace tutti::rendezvous {
namespace {

using ::testing::HasSubstr;

std::string u32(std::uint32_t value) {
  std::string bytes(4, '\0');
  std::memcpy(bytes.data(), &value, 4);
  return bytes;
}

std::vector<Frame> some_frames() {
  std::vector<Frame> frames;
  frames.push_back({.id = 7, .body = Request{Op::set, {"a", ""}, {"1", std::string("\0\xff", 2)}, -3}});
  frames.push_back({.id = 0, .body = Request{Op::barrier, {"b"}, {}, 1003}});
  frames.push_back({.id = std::numeric_limits<std::uint64_t>::max(), .body = Reply{{"x", "yz"}, 11}});
  frames.push_back({.id = 3, .body = Reply{}});
  frames.push_back({.id = 5, .body = Error{.code = Code::peer_lost, .message = "gone", .rank = Rank{17}}});
  frames.push_back({.id = 5, .body = Error{.code = Code::protocol, .message = ""}});
  frames.push_back({.id = 9, .body = Cancel{}});
  frames.push_back({.id = 1, .body = Goodbye{}});
  return frames;
}

TEST(Wire, frames_come_back_as_they_went) {
  for (const auto& frame : some_frames()) {
    const auto bytes = encode(frame).value();
    const auto decoded = decode_frame(bytes + "next");
    ASSERT_TRUE(decoded.ok() && decoded.value());
    EXPECT_EQ(decoded.value()->used, bytes.size());
    const auto& back = decoded.value()->value;
    EXPECT_EQ(back.id, frame.id);
    ASSERT_EQ(back.body.index(), frame.body.index());
    if (const auto* request = std::get_if<Request>(&frame.body)) {
      EXPECT_EQ(std::get<Request>(back.body), *request);
    } else if (const auto* reply = std::get_if<Reply>(&frame.body)) {
      EXPECT_EQ(std::get<Reply>(back.body), *reply);
    } else if (const auto* error = std::get_if<Error>(&frame.body)) {
      EXPECT_EQ(std::get<Error>(back.body).code, error->code);
      EXPECT_EQ(std::get<Error>(back.body).message, error->message);
      EXPECT_EQ(std::get<Error>(back.body).rank, error->rank);
    }
  }
}

TEST(Wire, a_frame_cut_anywhere_waits_for_the_rest) {
  for (const auto& frame : some_frames()) {
    const auto bytes = encode(frame).value();
    for (std::size_t length = 0; length < bytes.size(); ++length) {
      const auto decoded = decode_frame(std::string_view(bytes).substr(0, length));
      ASSERT_TRUE(decoded.ok());
      EXPECT_FALSE(decoded.value().has_value()) << length;
    }
  }
}

TEST(Wire, a_flipped_bit_never_gives_the_same_frame) {
  const auto bytes = encode(some_frames().front()).value();
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    auto flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    const auto decoded = decode_frame(flipped);
    if (decoded && decoded.value()) {
      EXPECT_EQ(encode(decoded.value()->value).value(), flipped.substr(0, decoded.value()->used));
    }
  }
}

TEST(Wire, lengths_beyond_the_limit_are_refused_before_anything_is_read) {
  for (const std::uint32_t length : {0xffffffffU, 0x80000000U, static_cast<std::uint32_t>(kMaxFrameBytes - 3)}) {
    const auto decoded = decode_frame(u32(length));
    ASSERT_FALSE(decoded.ok()) << length;
    EXPECT_EQ(decoded.error().code, Code::protocol);
  }
  EXPECT_TRUE(decode_frame(u32(static_cast<std::uint32_t>(kMaxFrameBytes - 4))).ok());
}

TEST(Wire, lengths_inside_a_frame_cannot_go_beyond_it) {
  // A request with one key, whose count or length says more than there is.
  const auto good = encode(Frame{.id = 1, .body = Request{Op::get, {"abc"}, {}, 0}}).value();
  const std::size_t count_at = 4 + 1 + 8 + 1 + 8;
  for (const std::size_t at : {count_at, count_at + 4}) {
    for (const std::uint32_t wrong : {0xffffffffU, 0x7fffffffU, 1U << 20, 2U, 4U, 9U}) {
      auto bad = good;
      std::memcpy(bad.data() + at, &wrong, 4);
      const auto decoded = decode_frame(bad);
      EXPECT_FALSE(decoded.ok() && decoded.value()) << at << " " << wrong;
    }
  }
}

TEST(Wire, what_nobody_sends_is_refused) {
  const auto body = [](std::string rest) { return u32(static_cast<std::uint32_t>(rest.size())) + rest; };
  const std::string id(8, '\1');
  EXPECT_FALSE(decode_frame(body("")).ok());                                         // nothing at all
  EXPECT_FALSE(decode_frame(body("\6" + id)).ok());                                  // no such tag
  EXPECT_FALSE(decode_frame(body(std::string(1, '\0') + id)).ok());                  // nor this
  EXPECT_FALSE(decode_frame(body("\5" + id + "x")).ok());                            // more than a goodbye
  EXPECT_FALSE(decode_frame(body("\1" + id + "\17" + std::string(16, '\0'))).ok());  // operation 15
  EXPECT_FALSE(decode_frame(body("\1" + id + std::string(1, '\0') + std::string(16, '\0'))).ok());
  EXPECT_FALSE(decode_frame(body("\3" + id + "\13" + u32(0) + u32(0))).ok());          // no such code
  EXPECT_FALSE(decode_frame(body("\3" + id + "\1" + u32(0xfffffffe) + u32(0))).ok());  // rank -2
  EXPECT_TRUE(decode_frame(body("\3" + id + "\1" + u32(0xffffffff) + u32(0))).ok());   // no rank
}

TEST(Wire, too_much_for_one_frame_is_the_callers_error) {
  const auto large = encode(Frame{.id = 1, .body = Request{Op::set, {"k"}, {std::string(kMaxFrameBytes, 'x')}, 0}});
  ASSERT_FALSE(large.ok());
  EXPECT_EQ(large.error().code, Code::invalid_argument);
  const auto many = encode(Frame{.id = 1, .body = Request{Op::get, std::vector<std::string>(kMaxStrings + 1), {}, 0}});
  ASSERT_FALSE(many.ok());
  EXPECT_THAT(many.error().message, HasSubstr(std::to_string(kMaxStrings)));
}

TEST(Wire, hello_comes_back_as_it_went) {
  const Hello hello{.rank = Rank{3}, .world_size = 1003, .pid = 4103, .version = "0.1.0", .host = "node-7"};
  const auto bytes = encode(hello);
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    const auto part = decode_hello(std::string_view(bytes).substr(0, length));
    ASSERT_TRUE(part.ok());
    EXPECT_FALSE(part.value().has_value());
  }
  const auto decoded = decode_hello(bytes);
  ASSERT_TRUE(decoded.ok() && decoded.value());
  EXPECT_EQ(decoded.value()->value, hello);
}

TEST(Wire, the_longest_hello_fits) {
  const Hello hello{.version = std::string(5000, 'v'), .host = std::string(5000, 'h')};
  const auto bytes = encode(hello);
  EXPECT_LE(bytes.size(), kMaxHelloBytes);
  EXPECT_TRUE(decode_hello(bytes).ok());
}

TEST(Wire, hello_and_answer_keep_their_form) {
  // These bytes are what a later version sends and expects: they must never change.
  const auto hello = encode(Hello{.rank = Rank{1}, .world_size = 2, .pid = 3, .version = "v", .host = "h"});
  EXPECT_EQ(hello, "TUTTI-HI" + u32(1) + u32(26) + u32(1) + u32(2) + u32(3) + u32(0) + u32(1) + "v" + u32(1) + "h");
  const auto answer = encode(Answer{.admitted = false, .generation = 5, .sentence = "no"});
  EXPECT_EQ(answer, "TUTTI-RE" + u32(1) + u32(15) + std::string(1, '\0') + u32(5) + u32(0) + u32(2) + "no");
}

TEST(Wire, a_later_protocol_may_say_more) {
  auto bytes = encode(Hello{.protocol = 9, .version = "v", .host = "h"}) + "more";
  bytes[12] = static_cast<char>(bytes[12] + 4);
  const auto decoded = decode_hello(bytes);
  ASSERT_TRUE(decoded.ok() && decoded.value());
  EXPECT_EQ(decoded.value()->value.protocol, 9U);
  EXPECT_EQ(decoded.value()->used, bytes.size());
  bytes[8] = 1;  // of this protocol it is nonsense
  EXPECT_FALSE(decode_hello(bytes).ok());
}

TEST(Wire, answers_come_back_as_they_went) {
  for (const bool admitted : {true, false}) {
    const Answer answer{.admitted = admitted, .generation = 1ULL << 40, .sentence = admitted ? "" : "because"};
    const auto decoded = decode_answer(encode(answer));
    ASSERT_TRUE(decoded.ok() && decoded.value());
    EXPECT_EQ(decoded.value()->value, answer);
  }
  EXPECT_FALSE(decode_answer("HTTP/1.1 200 OK").ok());
  EXPECT_FALSE(decode_answer("T!").ok());
  EXPECT_FALSE(decode_answer("TUTTI-RE" + u32(1) + u32(0xffffffff)).ok());
}

}  // namespace
}  // namespace tutti::rendezvous
