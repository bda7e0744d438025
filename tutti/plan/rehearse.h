#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tutti/plan/plan.h"

namespace tutti::plan {

/// How a plan is to be rehearsed.
struct Rehearsal {
  std::uint64_t seed = 0;    ///< of the order in which things happen
  bool buffered = false;     ///< whether a send is over before its message is received
  bool same_memory = false;  ///< whether input and output are the same memory, where they may be
};

/// Runs a plan on numbers, in this thread: what may happen next is drawn by lot. What went wrong, or nothing when the
/// result is right. One order of very many: it can find a flaw, and cannot prove that there is none.
std::optional<std::string> rehearse(const Plan& plan, const Rehearsal& rehearsal);

}  // namespace tutti::plan
