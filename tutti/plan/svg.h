#pragma once

#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace tutti::plan {

/// A picture under way, as text. Inside of this room.
class Svg {
 public:
  Svg(int width, int height) {
    add(R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {0} {1}" width="{0}" height="{1}" font-family="sans-serif" font-size="12">)",
        width, height);
  }

  template <class... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
    text_ += '\n';
  }

  /// The whole of it.
  std::string finish() && {
    add("</svg>");
    return std::move(text_);
  }

  /// What may stand between tags.
  static std::string escaped(std::string_view text) {
    std::string out;
    for (const char c : text) {
      out += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : std::string(1, c);
    }
    return out;
  }

 private:
  std::string text_;
};

}  // namespace tutti::plan
