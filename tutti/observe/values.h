#pragma once

#include <nlohmann/json_fwd.hpp>

namespace tutti::observe {

/// Null for what is not a number: JSON has no NaN.
nlohmann::json number(double value);

/// To a thousandth, which for milliseconds is what clocks tell: as text it is a third as long.
nlohmann::json thousandths(double value);

/// The same without what JSON's text cannot hold: bytes that are no UTF-8 are replaced, and NaN is null.
nlohmann::json writable(const nlohmann::json& value);

}  // namespace tutti::observe
