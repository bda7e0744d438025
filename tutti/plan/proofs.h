#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tutti/plan/events.h"
#include "tutti/plan/prove.h"

/// Inside of this room: the parts of a proof. Each finds the first flaw of its kind, or nothing; each relies on those
/// before it.
namespace tutti::plan {

std::optional<Flaw> find_malformed(const Plan& plan);
std::optional<Flaw> find_unmatched(const Plan& plan, const Events& events);
std::optional<Flaw> find_deadlock(const Plan& plan, const Events& events);
std::optional<Flaw> find_race(const Plan& plan, const Events& events);          // prove_races.cpp
std::optional<Flaw> find_wrong_result(const Plan& plan, const Events& events);  // prove_result.cpp

/// "output 4..6"
std::string text_of(Span span);
/// At a step, which is described before `what`.
Flaw flaw_at(const Plan& plan, Flaw::Kind kind, Rank rank, std::uint32_t step, std::string_view what);

}  // namespace tutti::plan
