#pragma once

#include <string>
#include <string_view>

namespace tutti::train {

/// Text of a model, for a terminal and for JSON: what is no UTF-8, or would be acted on rather than shown, becomes a
/// replacement character; the zero that ends a document becomes an empty line. Pure.
std::string printable(std::string_view text);

}  // namespace tutti::train
