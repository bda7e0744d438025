#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "tutti/base/error.h"
#include "tutti/base/rank.h"
#include "tutti/rendezvous/store.h"

namespace tutti::rendezvous {

// What goes over a connection, in order: hello, answer, then frames. All numbers are little-endian, all texts are a
// 32-bit length and bytes. Nothing here does I/O; every decoder takes any bytes and allocates no more than they hold.

/// Changes with the meaning of frames. Hello and answer keep their form for ever, so that two versions that cannot work
/// together can still tell their users so.
inline constexpr std::uint32_t kProtocol = 1;

inline constexpr std::size_t kMaxHelloBytes = 4096;
inline constexpr std::size_t kMaxAnswerBytes = 4096;
inline constexpr std::size_t kMaxFrameBytes = std::size_t{64} << 20;  ///< of one member's frame, with its head
inline constexpr std::size_t kMaxStrings = 1 << 20;                   ///< keys or values in one frame
inline constexpr std::size_t kMaxMessageBytes = 1 << 16;              ///< of an error's sentence

/// The first thing a process says: who it is.
struct Hello {
  std::uint32_t protocol = kProtocol;
  Rank rank{0};
  std::int32_t world_size = 1;
  std::int64_t pid = 0;
  std::string version;  ///< of the library
  std::string host;
  bool operator==(const Hello&) const = default;
};

/// What the server says to it. A refusal carries a sentence.
struct Answer {
  std::uint32_t protocol = kProtocol;
  bool admitted = false;
  std::uint64_t generation = 0;
  std::string sentence;
  bool operator==(const Answer&) const = default;
};

struct Cancel {};   ///< the caller waits no longer; it is answered with the reply, if it is there, or what is missing
struct Goodbye {};  ///< the rank leaves in peace

/// One message between a member and the server; an answer carries the id of its request.
struct Frame {
  std::uint64_t id = 0;
  std::variant<Request, Reply, Error, Cancel, Goodbye> body;
};

/// What was at the start of some bytes, and how many of them it took.
template <class T>
struct Decoded {
  T value;
  std::size_t used = 0;
};

/// nullopt: so far so good, more bytes are needed. Code::protocol: these bytes will never be one.
template <class T>
using Decoding = Result<std::optional<Decoded<T>>>;

/// Texts that are too long are cut: a hello always fits.
std::string encode(const Hello& hello);
std::string encode(const Answer& answer);
/// Code::invalid_argument when the frame would be larger than kMaxFrameBytes or hold more than kMaxStrings strings.
Result<std::string> encode(const Frame& frame);

/// A hello of another protocol may be followed by bytes that only that protocol knows; they count as used.
Decoding<Hello> decode_hello(std::string_view bytes);
Decoding<Answer> decode_answer(std::string_view bytes);
Decoding<Frame> decode_frame(std::string_view bytes);

}  // namespace tutti::rendezvous
