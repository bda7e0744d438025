#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tutti {

/// Which axes of a mesh a parameter is divided over: ranks along them have other values of it, and so other gradients.
struct ShardedOver {
  std::string parameter;          ///< its name, or the beginning of several names followed by '*'
  std::vector<std::string> axes;  ///< "tp"
};

/// Whether any of these says that the parameter is divided over the axis.
bool is_sharded(const std::vector<ShardedOver>& sharded, std::string_view parameter, std::string_view axis);

}  // namespace tutti
