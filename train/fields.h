#pragma once
// What a configuration consists of, as a table: what reads files, reads flags, writes help and checks ranges goes
// through it. A new field is a member of Config and a line in fields.cpp.

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "train/config.h"
#include "tutti/base/error.h"

namespace tutti::train {

/// How a field is typed on the command line.
enum class Typed { text, number, yes_no, list };

struct Field {
  std::string_view key;
  std::string_view help;
  Typed typed = Typed::text;
  std::string allowed;                                      ///< "a whole number from 1 to 64"
  std::vector<std::string> words;                           ///< where only some are allowed
  bool optional = false;                                    ///< null is allowed: it follows from the others
  std::function<bool(Config&, const nlohmann::json&)> put;  ///< false: not of the kind, or not allowed
  std::function<nlohmann::json(const Config&)> get;
};

std::span<const Field> fields();

/// Null when there is none.
const Field* find_field(std::string_view key);
std::vector<std::string> field_keys();

/// Sets one field. An error begins with `name`, which is what the user calls it: a key or a flag.
Status set(Config& config, const Field& field, const nlohmann::json& value, std::string_view name);

/// "--learning-rate"
std::string flag_of(const Field& field);

}  // namespace tutti::train
