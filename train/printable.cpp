#include "train/printable.h"

#include <array>
#include <cstdint>

namespace tutti::train {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

/// Bytes of a letter that begins with this one, or 0 where none does.
std::size_t announced_bytes(unsigned char first) {
  return first < 0x80                    ? 1
         : first >= 0xC2 && first < 0xE0 ? 2
         : (first & 0xF0U) == 0xE0       ? 3
         : first >= 0xF0 && first < 0xF5 ? 4
                                         : 0;
}

bool goes_on(unsigned char byte) { return (byte & 0xC0U) == 0x80; }

/// Bytes of the letter at the beginning, or 0 where there is none.
std::size_t letter_bytes(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto first = byte(0);
  const auto length = announced_bytes(first);
  if (length == 0 || length > text.size()) {
    return 0;
  }
  std::uint32_t letter = length == 1 ? first : first & (0x7FU >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if (!goes_on(byte(i))) {
      return 0;
    }
    letter = letter << 6U | (byte(i) & 0x3FU);
  }
  constexpr std::array<std::uint32_t, 5> kLeast{0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = letter >= 0xD800 && letter < 0xE000;
  const bool control = (letter < 0x20 && letter != '\n' && letter != '\t') || (letter >= 0x7F && letter < 0xA0);
  return letter < kLeast[length] || surrogate || control || letter > 0x10FFFF ? 0 : length;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string shown;
  while (!text.empty()) {
    const auto bytes = letter_bytes(text);
    if (bytes > 0) {
      shown += text.substr(0, bytes);
    } else {
      shown += text[0] == '\0' ? std::string_view("\n\n") : kReplacement;
    }
    text.remove_prefix(bytes > 0 ? bytes : 1);
  }
  return shown;
}

std::size_t unfinished_bytes(std::string_view text) {
  std::size_t bytes = 1;
  while (bytes < text.size() && bytes < 4 && goes_on(static_cast<unsigned char>(text[text.size() - bytes]))) {
    ++bytes;
  }
  const bool announces_more =
      !text.empty() && announced_bytes(static_cast<unsigned char>(text[text.size() - bytes])) > bytes;
  return announces_more ? bytes : 0;
}

}  // namespace tutti::train
