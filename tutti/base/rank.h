#pragma once

#include <cstddef>
#include <cstdint>

namespace tutti {

/// A participant's number in a world or a group. A count is not a rank: the conversions are explicit.
enum class Rank : std::int32_t {};

constexpr std::int32_t to_int(Rank rank) { return static_cast<std::int32_t>(rank); }
constexpr std::size_t to_index(Rank rank) { return static_cast<std::size_t>(rank); }
constexpr Rank to_rank(std::size_t index) { return static_cast<Rank>(index); }

}  // namespace tutti
