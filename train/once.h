#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tutti/base/rank.h"

namespace tutti::train {

/// What goes wrong with a rank and may do so in every step from then on.
enum class Event { late_rank, not_a_number, diverged_replica };

std::string_view to_string(Event event);

/// Says each kind of event once for each rank, and counts the others. One thread. Its memory grows with the ranks, not
/// with the steps.
class Once {
 public:
  struct Happened {
    Event event = Event::late_rank;
    Rank rank{0};
    std::string detail;  ///< of the first
    std::int64_t first_step = 0;
    std::int64_t last_step = 0;
    std::int64_t times = 0;
  };

  /// The sentence to print, the first time; nothing after that. `detail` ends the sentence: "by 35 ms".
  std::optional<std::string> say(Event event, Rank rank, std::int64_t step, std::string_view detail = {});

  /// One sentence for each that came more than once, to print at the end.
  std::vector<std::string> counts() const;

  /// All that happened, in the order in which it first did.
  std::vector<Happened> all() const;

 private:
  std::map<std::pair<Event, Rank>, Happened> happened_;
};

}  // namespace tutti::train
