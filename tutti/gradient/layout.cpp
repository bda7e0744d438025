#include "tutti/gradient/layout.h"

#include <algorithm>
#include <map>

namespace tutti::gradient {
namespace {

constexpr std::size_t kLine = 64;

std::size_t lines_of(std::size_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }

struct Open {
  BucketLayout bucket;
  std::size_t last = 0;  // where in the order its last parameter is
};

}  // namespace

bool BucketLayout::operator==(const BucketLayout& other) const {
  return kind == other.kind && bytes == other.bytes &&
         std::equal(slots.begin(), slots.end(), other.slots.begin(), other.slots.end(),
                    [](const Slot& a, const Slot& b) { return a.parameter == b.parameter && a.offset == b.offset; });
}

std::vector<BucketLayout> lay_out(std::span<const ParameterSize> parameters, std::span<const std::size_t> order,
                                  const BucketSizes& sizes) {
  std::vector<Open> full;
  std::map<int, Open> open;
  std::size_t left = 0;  // bytes that are in no full bucket
  for (const auto index : order) {
    left += lines_of(parameters[index].bytes);
  }
  for (std::size_t place = 0; place < order.size(); ++place) {
    const auto& parameter = parameters[order[place]];
    auto& [bucket, last] = open[parameter.kind];
    bucket.kind = parameter.kind;
    bucket.slots.push_back({order[place], bucket.bytes});
    bucket.bytes += lines_of(parameter.bytes);
    last = place;
    const auto limit =
        full.empty() ? sizes.first : std::min(sizes.others, std::max(sizes.first, left / sizes.part_of_rest));
    if (bucket.bytes >= limit) {
      left -= bucket.bytes;
      full.push_back(std::move(open[parameter.kind]));
      open.erase(parameter.kind);
    }
  }
  for (auto& [kind, rest] : open) {
    full.push_back(std::move(rest));
  }
  std::sort(full.begin(), full.end(), [](const Open& a, const Open& b) { return a.last < b.last; });
  std::vector<BucketLayout> buckets;
  for (auto& one : full) {
    buckets.push_back(std::move(one.bucket));
  }
  return buckets;
}

}  // namespace tutti::gradient
