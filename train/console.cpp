#include "train/console.h"

#include <fcntl.h>
#include <sys/ioctl.h>

#include <cmath>
#include <cstdlib>
#include <string_view>

#include <fmt/format.h>

#include "tutti/base/file_descriptor.h"

namespace tutti::train {
namespace {

constexpr std::chrono::milliseconds kLiveInterval{100};
constexpr std::chrono::milliseconds kPlainInterval{2000};
constexpr std::size_t kUsualColumns = 80;
constexpr const char* kErase = "\r\x1b[K";

}  // namespace

std::size_t terminal_columns() {
  // Standard output is a pipe to the launcher; the terminal has a name of its own.
  const FileDescriptor terminal(::open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC));
  winsize size{};
  const bool known = terminal.valid() && ::ioctl(terminal.get(), TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : kUsualColumns;
}

bool shows_unicode() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    if (const char* value = std::getenv(name); value != nullptr && *value != '\0') {
      const std::string_view text(value);
      return text.find("UTF-8") != text.npos || text.find("utf8") != text.npos || text.find("UTF8") != text.npos;
    }
  }
  return false;
}

Console::Console(Display display, std::FILE* out) : display_(display), out_(out) {}

void Console::erase() {
  if (drawn_) {
    std::fputs(kErase, out_);
    drawn_ = false;
  }
}

void Console::draw() {
  // The last column stays free: some terminals go to the next line when it is written.
  const auto line = live_line(shown_, terminal_columns() - 1, shows_unicode());
  std::fputs(fmt::format("{}{}", kErase, line).c_str(), out_);
  std::fflush(out_);
  drawn_ = true;
}

void Console::progress(const Progress& progress) {
  const bool evaluated = !std::isnan(progress.evaluation_loss);
  const bool last = progress.step == progress.steps;
  const auto kept = shown_.evaluation_loss;
  shown_ = progress;
  if (display_ == Display::json) {
    std::fputs((json_line(progress) + "\n").c_str(), out_);
    std::fflush(out_);
    return;
  }
  const auto now = Clock::now();
  const auto interval = display_ == Display::live ? kLiveInterval : kPlainInterval;
  const bool due = now - last_ >= interval || evaluated || last || progress.step == 1;
  if (display_ == Display::live && !evaluated) {
    shown_.evaluation_loss = kept;  // the latest stays to be seen
  }
  if (!due) {
    return;
  }
  last_ = now;
  if (display_ == Display::live) {
    draw();
  } else {
    std::fputs((plain_line(progress) + "\n").c_str(), out_);
    std::fflush(out_);
  }
}

void Console::finish() {
  if (drawn_) {
    draw();  // as it is now, whenever it was drawn last
    std::fputs("\n", out_);
    std::fflush(out_);
    drawn_ = false;
  }
}

void Console::say(const std::string& sentence) {
  if (display_ == Display::json) {
    return;
  }
  const bool redraw = drawn_;
  erase();
  std::fputs((sentence + "\n").c_str(), out_);
  if (redraw) {
    draw();
  }
  std::fflush(out_);
}

void Console::object(const std::string& json) {
  if (display_ == Display::json) {
    std::fputs((json + "\n").c_str(), out_);
    std::fflush(out_);
  }
}

}  // namespace tutti::train
