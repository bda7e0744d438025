#pragma once

#include <string>
#include <vector>

#include "tutti/plan/plan.h"

namespace tutti::plan {

/// A plan and what it is called, in a file.
struct NamedPlan {
  std::string algorithm;
  Plan plan;
};

/// As `docs/plans.md` says: to be looked at, changed, and read again.
std::string to_json(const std::vector<NamedPlan>& plans);

/// One plan, or a list of them, from somebody whom nobody knows: whatever the text, it is read or an error says what is
/// wrong with it, and memory stays within what proving a plan of that size takes. That steps fit each other, and what
/// there is, is for `prove` to find. `where` begins the error.
Result<std::vector<NamedPlan>> parse_plans(const std::string& text, const std::string& where);
Result<std::vector<NamedPlan>> read_plans(const std::string& path);

}  // namespace tutti::plan
