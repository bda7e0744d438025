#include "train/position_file.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "train/files.h"
#include "train/strict_json.h"

namespace tutti::train {
namespace {

constexpr std::pair<const char*, std::int64_t Position::*> kFields[] = {
    {"step", &Position::step}, {"sample", &Position::sample}, {"windows", &Position::windows}};

}  // namespace

std::string position_text(const Position& position) {
  nlohmann::ordered_json json;
  for (const auto& [key, member] : kFields) {
    json[key] = position.*member;
  }
  return json.dump() + "\n";
}

Result<Position> read_position(const std::string& folder) {
  const auto path = folder + "/position.json";
  const auto text = read_file(path);
  if (!text) {
    return text.error();
  }
  const auto json = parse_strictly(text.value());
  Position position;
  for (const auto& [key, member] : kFields) {
    const bool there = json && json.value().is_object() && json.value().contains(key) &&
                       json.value()[key].is_number_integer() && json.value()[key] >= 0;
    if (!there) {
      return Error{Code::invalid_argument, fmt::format("{}: does not say the {} of a training", path, key)};
    }
    position.*member = json.value()[key].get<std::int64_t>();
  }
  return position;
}

}  // namespace tutti::train
