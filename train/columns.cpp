#include "train/columns.h"

#include <algorithm>
#include <clocale>
#include <cwchar>

namespace tutti::train {
namespace {

/// While it lasts, this thread's letters are UTF-8, whatever the user's are. The C library knows how wide they are.
class Utf8 {
 public:
  Utf8() : locale_(::newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr)), before_(::uselocale(locale_)) {}
  Utf8(const Utf8&) = delete;
  Utf8& operator=(const Utf8&) = delete;
  ~Utf8() {
    ::uselocale(before_);
    if (locale_ != nullptr) {
      ::freelocale(locale_);
    }
  }

 private:
  locale_t locale_;  // null where there is no such: then the user's stay
  locale_t before_;
};

struct Letter {
  std::size_t bytes = 1;
  std::size_t columns = 1;
};

/// The first one of a text that is not empty.
Letter first_of(std::string_view text) {
  wchar_t letter = 0;
  std::mbstate_t state{};
  const auto bytes = std::mbrtowc(&letter, text.data(), text.size(), &state);
  if (bytes == 0 || bytes > text.size()) {
    return {};  // a zero, or no letter
  }
  const auto columns = ::wcwidth(letter);
  return {bytes, columns < 0 ? 1 : static_cast<std::size_t>(columns)};
}

}  // namespace

std::size_t columns_of(std::string_view text) {
  const Utf8 utf8;
  std::size_t columns = 0;
  while (!text.empty()) {
    const auto letter = first_of(text);
    columns += letter.columns;
    text.remove_prefix(letter.bytes);
  }
  return columns;
}

std::string cut(std::string_view text, std::size_t columns) {
  if (columns_of(text) <= columns) {
    return std::string(text);
  }
  if (columns == 0) {
    return {};
  }
  const Utf8 utf8;
  std::size_t bytes = 0;
  for (std::size_t used = 0; bytes < text.size();) {
    const auto letter = first_of(text.substr(bytes));
    used += letter.columns;
    if (used > columns - 1) {
      break;
    }
    bytes += letter.bytes;
  }
  return std::string(text.substr(0, bytes)) + "…";
}

}  // namespace tutti::train
