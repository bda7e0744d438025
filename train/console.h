#pragma once

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <string>

#include "train/live_line.h"

namespace tutti::train {

/// How a training is shown.
enum class Display {
  live,   ///< one line of a terminal, written over and over
  plain,  ///< a line every two seconds, and for what matters
  json,   ///< a line of JSON for every step
};

/// Columns of the terminal that this process belongs to, as they are now; 80 when there is none.
std::size_t terminal_columns();

/// Whether the terminal shows more than ASCII, by what the environment says of its language.
bool shows_unicode();

/// Shows a training on standard output. One thread.
class Console {
 public:
  explicit Console(Display display, std::FILE* out = stdout);

  /// After every step. The last one, and those with an evaluation, are always shown; others when it is time.
  void progress(const Progress& progress);

  /// There will be no more progress: the live line stays as it is.
  void finish();

  /// A line of its own, above the live one. Not shown among lines of JSON, which have `object`.
  void say(const std::string& sentence);
  /// A line of JSON, where that is what is shown.
  void object(const std::string& json);

  Display display() const { return display_; }

 private:
  using Clock = std::chrono::steady_clock;

  void draw();
  void erase();

  const Display display_;
  std::FILE* const out_;
  Progress shown_ = {};
  bool drawn_ = false;  // the live line is on the terminal
  Clock::time_point last_ = {};
};

}  // namespace tutti::train
