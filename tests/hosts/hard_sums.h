#pragma once

#include <string>

#include <tutti/tutti.h>

namespace tutti::tests {

/// Adds up, reproducibly, addends with exponents all over, subnormal and infinite ones and NaN, which ranks have by a
/// lot that the seed draws, in several ways and types. What differs from the bits that one rank alone gets; empty:
/// nothing.
std::string wrong_hard_sum(const World& world, unsigned seed);

}  // namespace tutti::tests
