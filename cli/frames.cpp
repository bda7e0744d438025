#include "cli/frames.h"

#include <fmt/format.h>

namespace tutti::cli {
namespace {

constexpr std::size_t kHeaderBytes = 5;

Error broken(std::string message) { return {.code = Code::protocol, .message = std::move(message)}; }

}  // namespace

std::string encode(const Frame& frame) {
  return PayloadWriter()
      .number(static_cast<std::uint32_t>(frame.payload.size()))
      .rest(std::string_view(reinterpret_cast<const char*>(&frame.type), 1))
      .rest(frame.payload)
      .take();
}

Result<std::vector<Frame>> FrameReader::feed(std::string_view bytes) {
  held_ += bytes;
  std::vector<Frame> frames;
  std::size_t at = 0;
  while (held_.size() - at >= kHeaderBytes) {
    const std::size_t length = PayloadReader(std::string_view(held_).substr(at)).number();
    if (length > kMostFrameBytes) {
      return broken(fmt::format("a frame of {} bytes; {} is the most", length, kMostFrameBytes));
    }
    if (held_.size() - at - kHeaderBytes < length) {
      break;
    }
    frames.push_back({static_cast<FrameType>(held_[at + kHeaderBytes - 1]), held_.substr(at + kHeaderBytes, length)});
    at += kHeaderBytes + length;
  }
  held_.erase(0, at);
  return frames;
}

PayloadWriter& PayloadWriter::number(std::uint32_t value) {
  for (int shift = 0; shift < 32; shift += 8) {
    bytes_ += static_cast<char>(value >> shift & 0xff);
  }
  return *this;
}

PayloadWriter& PayloadWriter::text(std::string_view value) {
  return number(static_cast<std::uint32_t>(value.size())).rest(value);
}

PayloadWriter& PayloadWriter::rest(std::string_view value) {
  bytes_ += value;
  return *this;
}

std::string_view PayloadReader::take(std::size_t count) {
  if (count > bytes_.size()) {
    ok_ = false;
    bytes_ = {};
    return {};
  }
  const std::string_view taken = bytes_.substr(0, count);
  bytes_.remove_prefix(count);
  return taken;
}

std::uint32_t PayloadReader::number() {
  std::uint32_t value = 0;
  int shift = 0;
  for (const char byte : take(4)) {
    value |= static_cast<std::uint32_t>(static_cast<unsigned char>(byte)) << shift;
    shift += 8;
  }
  return value;
}

std::string_view PayloadReader::text() { return take(number()); }

std::string_view PayloadReader::rest() { return take(bytes_.size()); }

std::string encode_share(const Share& share) {
  PayloadWriter writer;
  writer.number(static_cast<std::uint32_t>(to_int(share.first)))
      .number(static_cast<std::uint32_t>(share.count))
      .number(static_cast<std::uint32_t>(share.world_size))
      .number(static_cast<std::uint32_t>(share.bind))
      .text(share.directory);
  writer.number(static_cast<std::uint32_t>(share.command.size()));
  for (const std::string& word : share.command) {
    writer.text(word);
  }
  writer.number(static_cast<std::uint32_t>(share.variables.size()));
  for (const auto& [name, value] : share.variables) {
    writer.text(name).text(value);
  }
  return writer.take();
}

Result<Share> decode_share(std::string_view payload) {
  PayloadReader reader(payload);
  Share share{.command = {}, .variables = {}};
  share.first = Rank{static_cast<std::int32_t>(reader.number())};
  share.count = static_cast<int>(reader.number());
  share.world_size = static_cast<int>(reader.number());
  const std::uint32_t bind = reader.number();
  share.bind = static_cast<plan::Bind>(bind);
  share.directory = reader.text();
  for (std::uint32_t left = reader.number(); left > 0 && reader.ok(); --left) {
    share.command.emplace_back(reader.text());
  }
  for (std::uint32_t left = reader.number(); left > 0 && reader.ok(); --left) {
    const auto name = reader.text();
    share.variables.emplace_back(name, reader.text());
  }
  const bool sane = to_int(share.first) >= 0 && share.count >= 1 && share.world_size >= share.count &&
                    to_int(share.first) <= share.world_size - share.count &&
                    bind <= static_cast<std::uint32_t>(plan::Bind::numa);
  if (!reader.ok() || !sane || share.command.empty()) {
    return broken("the job's description does not make sense");
  }
  return share;
}

}  // namespace tutti::cli
