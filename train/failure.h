#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "tutti/comm/world.h"

namespace tutti::train {

/// What the exception that is being handled says to a user, on one line. To be called in a catch block.
Error caught_error();

/// What this rank is to say of the error that ends it, or nothing. Ranks that fail alike say it once, without a number;
/// what only some meet begins with the rank; who merely lost another rank leaves it to that one, or to the launcher, to
/// say why. Each rank that fails calls it, before it leaves the world; those that do not fail need not. Blocks for up
/// to `patience`, until all others have failed, too.
std::optional<std::string> failure_to_say(const World& world, const Error& error,
                                          std::chrono::milliseconds patience = std::chrono::seconds(2));

}  // namespace tutti::train
