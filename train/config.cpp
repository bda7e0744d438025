#include "train/config.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "train/fields.h"
#include "train/files.h"
#include "train/nearest.h"
#include "train/strict_json.h"
#include "tutti/base/whole_file.h"

namespace tutti::train {

ModelSize model_size(const Config& config) {
  const auto* const preset = find_preset(config.preset);
  require(preset != nullptr, "a configuration's preset is one that there is");
  return {.layers = config.layers.value_or(preset->size.layers),
          .heads = config.heads.value_or(preset->size.heads),
          .width = config.width.value_or(preset->size.width),
          .context = config.context.value_or(preset->size.context)};
}

nlohmann::ordered_json to_json(const Config& config) {
  auto json = nlohmann::ordered_json::object();
  for (const auto& field : fields()) {
    json[std::string(field.key)] = field.get(config);
  }
  return json;
}

Result<Config> from_json(std::string_view text, Config config) {
  const auto json = parse_strictly(text);
  if (!json) {
    return json.error();
  }
  if (!json.value().is_object()) {
    return Error{Code::invalid_argument, fmt::format("expected an object, {{...}}, not {}", shown(json.value()))};
  }
  for (const auto& [key, value] : json.value().items()) {
    const auto* const field = find_field(key);
    if (field == nullptr) {
      return Error{Code::invalid_argument,
                   fmt::format("no setting has the key {}{}", shown(key), did_you_mean(key, field_keys()))};
    }
    if (const auto done = set(config, *field, value, key); !done) {
      return done.error();
    }
  }
  return config;
}

Result<Config> read_config(const std::string& path) {
  const auto text = read_file(path);
  if (!text) {
    return text.error();
  }
  auto config = from_json(text.value());
  if (!config) {
    return Error{config.error().code, fmt::format("{}: {}", path, config.error().message)};
  }
  return config;
}

Status write_config(const std::string& path, const Config& config) {
  // A prompt or a path may hold bytes that JSON cannot.
  return write_whole(path, to_json(config).dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

}  // namespace tutti::train
