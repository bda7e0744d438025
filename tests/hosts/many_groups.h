#pragma once

#include <string>

#include <tutti/tutti.h>

namespace tutti::tests {

/// Groups of every kind over the world's hosts, all there at once, with operations under way on each of them: what is
/// wrong, or nothing.
std::string wrong_in_groups(const World& world);

/// Makes so many groups of ranks drawn by lot one after the other, while sums of the world go on, and drops them at
/// times that differ from rank to rank.
std::string wrong_in_passing_groups(const World& world, int count);

}  // namespace tutti::tests
