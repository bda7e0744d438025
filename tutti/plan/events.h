#pragma once

#include <optional>
#include <vector>

#include "tutti/plan/plan.h"

namespace tutti::plan {

/// All steps of a plan in one numbering, and which send meets which receive.
class Events {
 public:
  explicit Events(const Plan& plan);

  std::uint32_t size() const { return first_.back(); }
  std::uint32_t number(Rank rank, std::uint32_t step) const { return first_[to_index(rank)] + step; }
  Rank rank(std::uint32_t event) const;
  std::uint32_t step(std::uint32_t event) const { return event - first_[to_index(rank(event))]; }
  /// The other end of a message; nothing when there is none.
  std::optional<std::uint32_t> other_end(std::uint32_t event) const;
  /// The message before it between the same two, in the same direction.
  std::optional<std::uint32_t> earlier_message(std::uint32_t event) const;

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  void order_channels(const Plan& plan);
  void match_ends(const Plan& plan);

  std::vector<std::uint32_t> first_;  // event of each rank's first step, then how many there are
  std::vector<std::uint32_t> other_;
  std::vector<std::uint32_t> earlier_;
};

/// An order in which all events can happen, one after the other, when each waits for what its step waits for, messages
/// wait for both ends (or the receiving one alone, when `buffered`), and those between two ranks come in order. Not all
/// of them when some wait for each other.
std::vector<std::uint32_t> order_events(const Plan& plan, const Events& events, bool buffered);

}  // namespace tutti::plan
