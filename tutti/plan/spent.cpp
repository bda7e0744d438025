#include "tutti/plan/spent.h"

#include <algorithm>
#include <array>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tutti::plan {

Spent& Spent::operator+=(const Spent& other) {
  meeting += other.meeting;
  latency += other.latency;
  transfer += other.transfer;
  sharing += other.sharing;
  messages += other.messages;
  reduction += other.reduction;
  return *this;
}

Spent Spent::operator*(double factor) const {
  return {meeting * factor, latency * factor,  transfer * factor,
          sharing * factor, messages * factor, reduction * factor};
}

std::string describe(const Spent& spent) {
  std::array<std::pair<double, std::string_view>, 6> parts{{{spent.meeting, "meeting"},
                                                            {spent.latency, "latency"},
                                                            {spent.transfer, "transfer"},
                                                            {spent.sharing, "sharing links"},
                                                            {spent.messages, "messages"},
                                                            {spent.reduction, "reduction"}}};
  std::stable_sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<std::string> texts;
  for (const auto& [seconds, name] : parts) {
    if (const auto percent = spent.total() > 0 ? 100 * seconds / spent.total() : 0; percent >= 1) {
      texts.push_back(fmt::format("{:.0f} % {}", percent, name));
    }
  }
  return texts.empty() ? "nothing" : fmt::format("{}", fmt::join(texts, ", "));
}

}  // namespace tutti::plan
