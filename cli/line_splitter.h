#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace tutti::cli {

/// One line of a rank's output, or one piece of a line that is too long to be held back.
struct Line {
  std::string_view text;   ///< without its newline
  bool continued = false;  ///< the beginning was an earlier piece
  bool continues = false;  ///< the rest will be a later piece
};

/// Cuts a stream of bytes into lines. Pure: what comes out does not depend on how the bytes were cut on their way in.
class LineSplitter {
 public:
  static constexpr std::size_t kLongest = 64 * 1024;
  using Sink = std::function<void(const Line&)>;

  explicit LineSplitter(std::size_t longest = kLongest) : longest_(longest) {}

  /// Calls the sink for every line that is now whole. The text is valid during the call only.
  void feed(std::string_view bytes, const Sink& sink);

  /// The stream ended: what is left is a line too, although it lacks its newline.
  void finish(const Sink& sink);

 private:
  void emit(std::string_view text, bool continues, const Sink& sink);
  void hold(std::string_view bytes, const Sink& sink);

  std::size_t longest_;
  std::string held_;  ///< the beginning of a line; at most `longest_` bytes
  bool continued_ = false;
};

}  // namespace tutti::cli
