#include "cli/line_splitter.h"

#include <algorithm>

namespace tutti::cli {

void LineSplitter::emit(std::string_view text, bool continues, const Sink& sink) {
  sink({.text = text, .continued = continued_, .continues = continues});
  continued_ = continues;
}

/// Keeps bytes that hold no newline; gives out a piece whenever more than the longest line is there.
void LineSplitter::hold(std::string_view bytes, const Sink& sink) {
  while (held_.size() + bytes.size() > longest_) {
    const std::size_t taken = longest_ - held_.size();
    held_.append(bytes.substr(0, taken));
    bytes.remove_prefix(taken);
    emit(held_, true, sink);
    held_.clear();
  }
  held_.append(bytes);
}

void LineSplitter::feed(std::string_view bytes, const Sink& sink) {
  for (;;) {
    const std::size_t newline = bytes.find('\n');
    if (newline == std::string_view::npos) {
      hold(bytes, sink);
      return;
    }
    if (held_.empty() && newline <= longest_) {  // the usual case, without a copy
      emit(bytes.substr(0, newline), false, sink);
    } else {
      hold(bytes.substr(0, newline), sink);
      emit(held_, false, sink);
      held_.clear();
    }
    bytes.remove_prefix(newline + 1);
  }
}

void LineSplitter::finish(const Sink& sink) {
  if (!held_.empty()) {
    emit(held_, false, sink);
    held_.clear();
  }
  continued_ = false;
}

}  // namespace tutti::cli
