#include "tutti/gradient/sharded_over.h"

#include <algorithm>

namespace tutti {
namespace {

bool names(std::string_view pattern, std::string_view name) {
  return pattern.ends_with('*') ? name.starts_with(pattern.substr(0, pattern.size() - 1)) : name == pattern;
}

}  // namespace

bool is_sharded(const std::vector<ShardedOver>& sharded, std::string_view parameter, std::string_view axis) {
  return std::any_of(sharded.begin(), sharded.end(), [&](const ShardedOver& one) {
    return names(one.parameter, parameter) && std::find(one.axes.begin(), one.axes.end(), axis) != one.axes.end();
  });
}

}  // namespace tutti
