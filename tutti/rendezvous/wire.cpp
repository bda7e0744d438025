#include "tutti/rendezvous/wire.h"

#include <bit>
#include <cstring>
#include <type_traits>

#include <fmt/format.h>

namespace tutti::rendezvous {
namespace {

static_assert(std::endian::native == std::endian::little, "the wire is little-endian and written by copying");

constexpr std::string_view kHelloMagic = "TUTTI-HI";
constexpr std::string_view kAnswerMagic = "TUTTI-RE";
constexpr std::size_t kHelloHead = 16;   // magic, protocol, length of the rest
constexpr std::size_t kAnswerHead = 16;  // the same
constexpr std::size_t kFrameHead = 4;    // length of the rest
constexpr std::size_t kMaxText = 1024;   // of a hello's texts
constexpr std::size_t kMaxSentence = 3072;

enum class Tag : std::uint8_t { request = 1, reply = 2, error = 3, cancel = 4, goodbye = 5 };

class Writer {
 public:
  template <class T>
    requires std::is_arithmetic_v<T>
  void number(T value) {
    char raw[sizeof(T)];
    std::memcpy(raw, &value, sizeof(T));
    bytes_.append(raw, sizeof(T));
  }
  void raw(std::string_view bytes) { bytes_.append(bytes); }
  void text(std::string_view text) {
    number(static_cast<std::uint32_t>(text.size()));
    raw(text);
  }
  void texts(const std::vector<std::string>& all) {
    number(static_cast<std::uint32_t>(all.size()));
    for (const auto& one : all) {
      text(one);
    }
  }
  void reserve(std::size_t bytes) { bytes_.reserve(bytes); }
  /// Fills in a length that was not known when it was written.
  void patch(std::size_t at, std::uint32_t value) { std::memcpy(bytes_.data() + at, &value, sizeof(value)); }
  std::string take() { return std::move(bytes_); }
  std::size_t size() const { return bytes_.size(); }

 private:
  std::string bytes_;
};

/// Reads to the end of its bytes and no further; after the first thing that is not there, `ok()` is false.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  template <class T>
    requires std::is_arithmetic_v<T>
  T number() {
    T value{};
    const auto raw = take(sizeof(T));
    if (ok_) {
      std::memcpy(&value, raw.data(), sizeof(T));
    }
    return value;
  }
  std::string text(std::size_t most) {
    const auto length = number<std::uint32_t>();
    if (length > most) {
      ok_ = false;
    }
    return ok_ ? std::string(take(length)) : std::string();
  }
  std::vector<std::string> texts() {
    const auto count = number<std::uint32_t>();
    // Each takes four bytes at least, so a count cannot make us reserve more than a few times what was sent.
    if (count > kMaxStrings || count > bytes_.size() / sizeof(std::uint32_t)) {
      ok_ = false;
    }
    std::vector<std::string> all;
    if (!ok_) {
      return all;
    }
    all.reserve(count);
    for (std::uint32_t i = 0; i < count && ok_; ++i) {
      all.push_back(text(kMaxFrameBytes));
    }
    return all;
  }
  bool ok() const { return ok_; }
  bool finished() const { return ok_ && bytes_.empty(); }

 private:
  std::string_view take(std::size_t count) {
    if (!ok_ || count > bytes_.size()) {
      ok_ = false;
      return {};
    }
    const auto taken = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return taken;
  }
  std::string_view bytes_;
  bool ok_ = true;
};

Error broken(std::string sentence) { return {.code = Code::protocol, .message = std::move(sentence)}; }

/// The common head of hello and answer: magic, protocol, length of the rest.
struct Head {
  bool whole = false;  ///< all of the message is there
  std::uint32_t protocol = 0;
  std::string_view rest;
};
/// Fills `head` in; the error says why these bytes will never be one.
std::optional<Error> decode_head(std::string_view bytes, std::string_view magic, std::size_t most, Head& head) {
  const auto seen = bytes.substr(0, magic.size());
  if (seen != magic.substr(0, seen.size())) {
    return broken("does not speak this protocol");
  }
  if (bytes.size() < kHelloHead) {
    return std::nullopt;
  }
  Reader reader(bytes.substr(magic.size()));
  head.protocol = reader.number<std::uint32_t>();
  const auto length = reader.number<std::uint32_t>();
  if (length > most - kHelloHead) {
    return broken(fmt::format("announces {} bytes, at most {} are allowed here", length, most - kHelloHead));
  }
  head.whole = bytes.size() - kHelloHead >= length;
  head.rest = bytes.substr(kHelloHead, length);
  return std::nullopt;
}

void write_body(Writer& out, const Request& request) {
  out.number(static_cast<std::uint8_t>(request.op));
  out.number(request.number);
  out.texts(request.keys);
  out.texts(request.values);
}
void write_body(Writer& out, const Reply& reply) {
  out.number(reply.number);
  out.texts(reply.values);
}
void write_body(Writer& out, const Error& error) {
  out.number(static_cast<std::uint8_t>(error.code));
  out.number(error.rank ? to_int(*error.rank) : std::int32_t{-1});
  out.text(std::string_view(error.message).substr(0, kMaxMessageBytes));
}
void write_body(Writer&, const Cancel&) {}
void write_body(Writer&, const Goodbye&) {}

constexpr Tag tag_of(const Request&) { return Tag::request; }
constexpr Tag tag_of(const Reply&) { return Tag::reply; }
constexpr Tag tag_of(const Error&) { return Tag::error; }
constexpr Tag tag_of(const Cancel&) { return Tag::cancel; }
constexpr Tag tag_of(const Goodbye&) { return Tag::goodbye; }

std::size_t size_of(const std::vector<std::string>& texts) {
  std::size_t bytes = sizeof(std::uint32_t);
  for (const auto& text : texts) {
    bytes += sizeof(std::uint32_t) + text.size();
  }
  return bytes;
}
std::size_t size_of(const Request& request) { return 9 + size_of(request.keys) + size_of(request.values); }
std::size_t size_of(const Reply& reply) { return 8 + size_of(reply.values); }
std::size_t size_of(const Error& error) { return 9 + std::min(error.message.size(), kMaxMessageBytes); }
std::size_t size_of(const Cancel&) { return 0; }
std::size_t size_of(const Goodbye&) { return 0; }

std::size_t most_strings(const Request& request) { return std::max(request.keys.size(), request.values.size()); }
std::size_t most_strings(const Reply& reply) { return reply.values.size(); }
template <class T>
std::size_t most_strings(const T&) {
  return 0;
}

std::optional<Request> read_request(Reader& in) {
  const auto op = in.number<std::uint8_t>();
  if (op < static_cast<std::uint8_t>(Op::set) || op > static_cast<std::uint8_t>(Op::barrier)) {
    return std::nullopt;
  }
  Request request{.op = static_cast<Op>(op), .keys = {}, .values = {}};
  request.number = in.number<std::int64_t>();
  request.keys = in.texts();
  request.values = in.texts();
  return request;
}

std::optional<Error> read_error(Reader& in) {
  const auto code = in.number<std::uint8_t>();
  const auto rank = in.number<std::int32_t>();
  if (code > static_cast<std::uint8_t>(Code::protocol) || rank < -1) {
    return std::nullopt;
  }
  Error error{.code = static_cast<Code>(code), .message = in.text(kMaxMessageBytes)};
  if (rank >= 0) {
    error.rank = Rank{rank};
  }
  return error;
}

std::optional<Frame> read_frame(Reader& in) {
  const auto tag = in.number<std::uint8_t>();
  Frame frame;
  frame.id = in.number<std::uint64_t>();
  switch (static_cast<Tag>(tag)) {
    case Tag::request:
      if (auto request = read_request(in)) {
        frame.body = std::move(*request);
        return frame;
      }
      return std::nullopt;
    case Tag::reply: {
      Reply reply;
      reply.number = in.number<std::int64_t>();
      reply.values = in.texts();
      frame.body = std::move(reply);
      return frame;
    }
    case Tag::error:
      if (auto error = read_error(in)) {
        frame.body = std::move(*error);
        return frame;
      }
      return std::nullopt;
    case Tag::cancel: frame.body = Cancel{}; return frame;
    case Tag::goodbye: frame.body = Goodbye{}; return frame;
  }
  return std::nullopt;
}

}  // namespace

std::string encode(const Hello& hello) {
  Writer out;
  out.raw(kHelloMagic);
  out.number(hello.protocol);
  out.number(std::uint32_t{0});
  out.number(to_int(hello.rank));
  out.number(hello.world_size);
  out.number(hello.pid);
  out.text(std::string_view(hello.version).substr(0, kMaxText));
  out.text(std::string_view(hello.host).substr(0, kMaxText));
  out.patch(kHelloHead - sizeof(std::uint32_t), static_cast<std::uint32_t>(out.size() - kHelloHead));
  return out.take();
}

std::string encode(const Answer& answer) {
  Writer out;
  out.raw(kAnswerMagic);
  out.number(answer.protocol);
  out.number(std::uint32_t{0});
  out.number(static_cast<std::uint8_t>(answer.admitted));
  out.number(answer.generation);
  out.text(std::string_view(answer.sentence).substr(0, kMaxSentence));
  out.patch(kAnswerHead - sizeof(std::uint32_t), static_cast<std::uint32_t>(out.size() - kAnswerHead));
  return out.take();
}

Result<std::string> encode(const Frame& frame) {
  return std::visit(
      [&](const auto& body) -> Result<std::string> {
        if (most_strings(body) > kMaxStrings) {
          return Error{
              .code = Code::invalid_argument,
              .message = fmt::format("{} keys or values in one call; at most {} fit", most_strings(body), kMaxStrings)};
        }
        const std::size_t total = kFrameHead + 9 + size_of(body);
        if (total > kMaxFrameBytes) {
          return Error{.code = Code::invalid_argument,
                       .message = fmt::format("{} bytes in one call; at most {} fit", total, kMaxFrameBytes)};
        }
        Writer out;
        out.reserve(total);
        out.number(static_cast<std::uint32_t>(total - kFrameHead));
        out.number(static_cast<std::uint8_t>(tag_of(body)));
        out.number(frame.id);
        write_body(out, body);
        return out.take();
      },
      frame.body);
}

Decoding<Hello> decode_hello(std::string_view bytes) {
  Head head;
  if (auto error = decode_head(bytes, kHelloMagic, kMaxHelloBytes, head)) {
    return *error;
  }
  const auto [whole, protocol, rest] = head;
  if (!whole) {
    return std::optional<Decoded<Hello>>();
  }
  Reader in(rest);
  Hello hello{.protocol = protocol, .version = {}, .host = {}};
  hello.rank = Rank{in.number<std::int32_t>()};
  hello.world_size = in.number<std::int32_t>();
  hello.pid = in.number<std::int64_t>();
  hello.version = in.text(kMaxText);
  hello.host = in.text(kMaxText);
  if (!in.ok() || (protocol == kProtocol && !in.finished())) {
    return broken("sent a hello that makes no sense");
  }
  return std::optional<Decoded<Hello>>({.value = std::move(hello), .used = kHelloHead + rest.size()});
}

Decoding<Answer> decode_answer(std::string_view bytes) {
  Head head;
  if (auto error = decode_head(bytes, kAnswerMagic, kMaxAnswerBytes, head)) {
    return *error;
  }
  const auto [whole, protocol, rest] = head;
  if (!whole) {
    return std::optional<Decoded<Answer>>();
  }
  Reader in(rest);
  Answer answer{.protocol = protocol, .sentence = {}};
  const auto admitted = in.number<std::uint8_t>();
  answer.admitted = admitted == 1;
  answer.generation = in.number<std::uint64_t>();
  answer.sentence = in.text(kMaxSentence);
  if (!in.ok() || admitted > 1 || (protocol == kProtocol && !in.finished())) {
    return broken("sent an answer that makes no sense");
  }
  return std::optional<Decoded<Answer>>({.value = std::move(answer), .used = kAnswerHead + rest.size()});
}

Decoding<Frame> decode_frame(std::string_view bytes) {
  if (bytes.size() < kFrameHead) {
    return std::optional<Decoded<Frame>>();
  }
  const auto length = Reader(bytes).number<std::uint32_t>();
  if (length > kMaxFrameBytes - kFrameHead) {
    return broken(fmt::format("announces a frame of {} bytes; at most {} are allowed", length, kMaxFrameBytes));
  }
  if (bytes.size() - kFrameHead < length) {
    return std::optional<Decoded<Frame>>();
  }
  Reader in(bytes.substr(kFrameHead, length));
  auto frame = read_frame(in);
  if (!frame || !in.finished()) {
    return broken("sent a frame that makes no sense");
  }
  return std::optional<Decoded<Frame>>({.value = std::move(*frame), .used = kFrameHead + length});
}

}  // namespace tutti::rendezvous
