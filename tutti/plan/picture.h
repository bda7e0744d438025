#pragma once

#include <string>

#include "tutti/plan/prove.h"

namespace tutti::plan {

/// A plan as an SVG: ranks down, time across, a column for what can happen at once if everything took as long. Arrows
/// are messages, boxes are what is added or copied; the colour says which part of the data it is. What is wrong, when
/// that is given, is red, and written below.
std::string draw(const Plan& plan, const Flaw* flaw = nullptr);

}  // namespace tutti::plan
