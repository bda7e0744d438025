#include "tutti/base/bytes.h"

#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/format.h>

namespace tutti {
namespace {

struct Unit {
  std::string_view name;
  std::size_t bytes;
};

constexpr std::array kUnits{Unit{"Gi", std::size_t{1} << 30}, Unit{"Mi", std::size_t{1} << 20},
                            Unit{"Ki", std::size_t{1} << 10}, Unit{"", 1}};

}  // namespace

Result<std::size_t> parse_bytes(std::string_view text) {
  double value = 0;
  const auto* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  std::string_view name(end, static_cast<std::size_t>(last - end));
  if (name.ends_with('B')) {
    name.remove_suffix(1);
  }
  const auto* const unit =
      std::find_if(kUnits.begin(), kUnits.end(), [&](const Unit& known) { return name == known.name; });
  constexpr double kMost = 1e15;
  if (error == std::errc() && unit != kUnits.end()) {
    const auto bytes = value * static_cast<double>(unit->bytes);
    if (bytes >= 1 && bytes <= kMost) {
      return static_cast<std::size_t>(bytes);
    }
  }
  return Error{Code::invalid_argument, fmt::format("'{}' is no size such as 4096, 64Ki, 25Mi or 1Gi", text)};
}

std::string spell_bytes(std::size_t bytes) {
  const auto* const unit = std::find_if(kUnits.begin(), kUnits.end(), [&](const Unit& known) {
    return known.bytes == 1 || (bytes != 0 && bytes % known.bytes == 0);
  });
  return fmt::format("{}{}", bytes / unit->bytes, unit->name);
}

}  // namespace tutti
