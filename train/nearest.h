#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tutti::train {

/// The word that `given` was probably meant to be: the one that takes the fewest changes of a letter, or empty when
/// none is near. Pure.
std::string nearest(std::string_view given, const std::vector<std::string>& words);

/// "; did you mean 'steps'?", or nothing when no word is near.
std::string did_you_mean(std::string_view given, const std::vector<std::string>& words);

}  // namespace tutti::train
