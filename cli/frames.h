#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/rank_runner.h"
#include "tutti/base/error.h"

namespace tutti::cli {

/// What the launcher and the agents on its hosts say to each other, over the agent's standard input and output.
/// A frame is a length (32 bits, little-endian), a type, and that many bytes.
enum class FrameType : std::uint8_t {
  // to the agent
  share = 1,   ///< encoded Share
  secret = 2,  ///< the job's secret; the ranks start when both have come
  signal = 3,  ///< u32: to all ranks
  kill = 4,    ///< end all ranks at once
  // from the agent
  started = 10,     ///< u32 rank, u32 pid
  output = 11,      ///< u32 rank, u32 stream, bytes
  output_end = 12,  ///< u32 rank, u32 stream
  ended = 13,       ///< u32 rank, u32 wait status
  failed = 14,      ///< u32 exit code, sentence
  says = 15,        ///< a line for the user
};

struct Frame {
  FrameType type = FrameType::kill;
  std::string payload = {};
  bool operator==(const Frame&) const = default;
};

/// What an agent says first, before any frame. Whatever a login shell prints comes before it and is skipped.
/// The version follows, then a newline.
inline constexpr std::string_view kGreeting = "\x01tutti-host-agent ";

inline constexpr std::size_t kMostFrameBytes = 16 << 20;

std::string encode(const Frame& frame);

/// Puts frames together from bytes as they come. Fails on a length beyond the limit; then the peer is not ours.
class FrameReader {
 public:
  Result<std::vector<Frame>> feed(std::string_view bytes);

 private:
  std::string held_;
};

/// Numbers and texts one after another, as payloads hold them.
class PayloadWriter {
 public:
  PayloadWriter& number(std::uint32_t value);
  PayloadWriter& text(std::string_view value);  ///< with its length
  PayloadWriter& rest(std::string_view value);  ///< without: the last thing
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

/// Reads what PayloadWriter wrote. Reading beyond the end gives zeros and empty texts and makes `ok()` false.
class PayloadReader {
 public:
  explicit PayloadReader(std::string_view bytes) : bytes_(bytes) {}
  std::uint32_t number();
  std::string_view text();
  std::string_view rest();
  bool ok() const { return ok_; }

 private:
  std::string_view take(std::size_t count);

  std::string_view bytes_;
  bool ok_ = true;
};

std::string encode_share(const Share& share);
Result<Share> decode_share(std::string_view payload);

}  // namespace tutti::cli
