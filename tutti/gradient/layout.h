#pragma once
// Which parameters travel together. Pure.

#include <cstddef>
#include <span>
#include <vector>

namespace tutti::gradient {

/// What division into buckets needs to know of a parameter.
struct ParameterSize {
  std::size_t bytes = 0;
  int kind = 0;  ///< only those of one kind (type, device) share a bucket
};

/// Where a parameter's gradient lies in its bucket.
struct Slot {
  std::size_t parameter = 0;
  std::size_t offset = 0;  ///< in bytes
};

struct BucketLayout {
  int kind = 0;
  std::vector<Slot> slots;
  std::size_t bytes = 0;

  bool operator==(const BucketLayout& other) const;
};

struct BucketSizes {
  std::size_t first = std::size_t{1} << 20;  ///< small, so that something is on its way early
  std::size_t others = std::size_t{25} << 20;
  /// A bucket is no more than this part of what is left, unless that is less than first: what is full last has nothing
  /// left to hide behind. Where sending takes about as long as computing, a half leaves the cable idle until it is
  /// full.
  std::size_t part_of_rest = 2;
};

/// Fills buckets with the parameters of `order`, which are in the order in which gradients arrive. A bucket takes no
/// more once it has as many bytes as it should; there is one open for each kind. Buckets come in the order in which
/// they will be full. Slots begin at cache lines.
std::vector<BucketLayout> lay_out(std::span<const ParameterSize> parameters, std::span<const std::size_t> order,
                                  const BucketSizes& sizes);

}  // namespace tutti::gradient
