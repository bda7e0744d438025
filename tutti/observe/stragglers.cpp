#include "tutti/observe/stragglers.h"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "tutti/observe/values.h"

namespace tutti::observe {

Stragglers::Stragglers(int ranks) : late_(static_cast<std::size_t>(ranks)) { arrivals_.reserve(late_.size()); }

void Stragglers::count(std::span<const RankTimes> ranks) {
  arrivals_.clear();
  std::size_t last = 0;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    arrivals_.push_back(ranks[rank].arrived_ms);
    if (!std::isfinite(arrivals_.back())) {
      return;
    }
    last = arrivals_.back() > arrivals_[last] ? rank : last;
  }
  const auto count = arrivals_.size();
  const double at = count > 0 ? arrivals_[last] : 0;
  std::sort(arrivals_.begin(), arrivals_.end());
  if (count < 2 || arrivals_[count - 2] == at) {
    return;
  }
  const double behind = at - (arrivals_[(count - 1) / 2] + arrivals_[count / 2]) / 2;
  Late& late = late_[last];
  ++late.times_last;
  late.late_ms += behind;
  late.most_late_ms = std::max(late.most_late_ms, behind);
}

nlohmann::json Stragglers::to_json() const {
  nlohmann::json columns;
  for (const auto* name : {"rank", "times_last", "late_ms", "most_late_ms"}) {
    columns[name] = nlohmann::json::array();
  }
  for (std::size_t rank = 0; rank < late_.size(); ++rank) {
    columns["rank"].push_back(rank);
    columns["times_last"].push_back(late_[rank].times_last);
    columns["late_ms"].push_back(thousandths(late_[rank].late_ms));
    columns["most_late_ms"].push_back(thousandths(late_[rank].most_late_ms));
  }
  return columns;
}

}  // namespace tutti::observe
