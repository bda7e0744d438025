#pragma once

#include <cstdint>

#include "tutti/plan/plan.h"

namespace tutti::plan {

/// What a plan moves, counted from its steps. Amounts are in blocks: what one rank contributes or gets.
struct Traffic {
  std::uint32_t most_messages = 0;  ///< sent by one rank
  double most_sent = 0;             ///< by one rank
  double most_received = 0;         ///< by one rank
  double total = 0;                 ///< by all ranks
  double most_on_a_link = 0;        ///< from one rank to one other
  std::uint32_t longest_chain = 0;  ///< messages that wait for each other: what latency multiplies
};

Traffic count_traffic(const Plan& plan);

}  // namespace tutti::plan
