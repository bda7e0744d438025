#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tutti::train {

/// Text of a model, for a terminal and for JSON: what is no UTF-8, or would be acted on rather than shown, becomes a
/// replacement character; the zero that ends a document becomes an empty line. Pure.
std::string printable(std::string_view text);

/// How many bytes at the end begin a letter of UTF-8 that goes on behind them: to be shown when the rest is there.
/// Pure.
std::size_t unfinished_bytes(std::string_view text);

}  // namespace tutti::train
