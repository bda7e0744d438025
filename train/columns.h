#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tutti::train {

/// Columns that a terminal takes for UTF-8: letters of several bytes are one, wide ones two, marks on letters none.
/// What is no UTF-8, or a control character, is shown as one. Any thread.
std::size_t columns_of(std::string_view text);

/// As much of the beginning as fits; where something is left out, the last column is an ellipsis.
std::string cut(std::string_view text, std::size_t columns);

}  // namespace tutti::train
