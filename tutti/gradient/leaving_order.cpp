#include "tutti/gradient/leaving_order.h"

#include <algorithm>

namespace tutti::gradient {

std::size_t first_held(std::span<const Journey> journeys) {
  double free = 0;  // when the cable is
  for (std::size_t i = 0; i + 1 < journeys.size(); ++i) {
    const auto leaves = i == 0 ? journeys[i].full : std::max(free, journeys[i].full);
    if (leaves >= journeys.back().full) {
      return i;
    }
    free = leaves + journeys[i].under_way;
  }
  return journeys.size();
}

}  // namespace tutti::gradient
