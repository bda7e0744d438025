#include "tutti/observe/values.h"

#include <cmath>

#include <nlohmann/json.hpp>

namespace tutti::observe {

nlohmann::json number(double value) { return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json(); }

nlohmann::json thousandths(double value) { return number(std::round(value * 1000) / 1000); }

nlohmann::json writable(const nlohmann::json& value) {
  return nlohmann::json::parse(value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

}  // namespace tutti::observe
