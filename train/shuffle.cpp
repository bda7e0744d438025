#include "train/shuffle.h"

#include <bit>

#include "tutti/base/error.h"

namespace tutti::train {
namespace {

constexpr std::uint64_t kRounds = 6;
constexpr std::uint64_t kFactor = 0x5e2d58d8b3bcdf1b;  // 2^64 over e, made odd
constexpr std::uint64_t kStride = 0x9e3779b97f4a7c15;  // 2^64 over the golden ratio: what is near becomes far

/// Every bit of the result depends on every bit of the value: two multiplications, each between shifts.
std::uint64_t mix(std::uint64_t value) {
  value = (value ^ (value >> 32)) * kFactor;
  value = (value ^ (value >> 29)) * kFactor;
  return value ^ (value >> 32);
}

}  // namespace

Shuffle::Shuffle(std::int64_t size, std::uint64_t seed, std::int64_t epoch)
    : size_(size), key_(mix(mix(seed + kStride) + static_cast<std::uint64_t>(epoch) * kStride)) {
  require(size >= 1 && epoch >= 0, "a shuffle has something to shuffle");
  const auto bits = static_cast<unsigned>(std::bit_width(static_cast<std::uint64_t>(size - 1)));
  half_bits_ = (bits + 1) / 2;
}

std::uint64_t Shuffle::permute(std::uint64_t value) const {
  const auto mask = (std::uint64_t{1} << half_bits_) - 1;
  auto left = value >> half_bits_;
  auto right = value & mask;
  for (std::uint64_t round = 1; round <= kRounds; ++round) {
    const auto swapped = left ^ (mix(right + key_ + round * kStride) & mask);
    left = right;
    right = swapped;
  }
  return left << half_bits_ | right;
}

std::int64_t Shuffle::operator[](std::int64_t place) const {
  require(place >= 0 && place < size_, "a shuffle is asked for one of its places");
  auto value = static_cast<std::uint64_t>(place);
  do {
    value = permute(value);
  } while (value >= static_cast<std::uint64_t>(size_));
  return static_cast<std::int64_t>(value);
}

}  // namespace tutti::train
