#pragma once
// The kinds of fields that fields.cpp has in its table: how each is read from JSON, checked and written.

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "train/fields.h"

namespace tutti::train {

struct About {
  std::string_view key;
  std::string_view help;
};

template <class T>
struct Inner {
  using Type = T;
};
template <class T>
struct Inner<std::optional<T>> {
  using Type = T;
};

/// A field whose value `read` finds in JSON, or not. Members may be optional.
template <class T, class Read>
Field make(const About& about, Typed typed, std::string allowed, T Config::*member, Read read) {
  constexpr bool kOptional = !std::is_same_v<T, typename Inner<T>::Type>;
  const auto put = [member, read](Config& config, const nlohmann::json& json) {
    if constexpr (kOptional) {
      if (json.is_null()) {
        (config.*member).reset();
        return true;
      }
    }
    std::optional<typename Inner<T>::Type> value = read(json);
    if (value) {
      config.*member = std::move(*value);
    }
    return value.has_value();
  };
  const auto get = [member](const Config& config) -> nlohmann::json {
    if constexpr (kOptional) {
      return config.*member ? nlohmann::json(*(config.*member)) : nlohmann::json(nullptr);
    } else {
      return config.*member;
    }
  };
  return {about.key, about.help, typed, std::move(allowed), {}, kOptional, put, get};
}

template <class T>
Field whole(const About& about, T Config::*member, std::int64_t low, std::int64_t high) {
  using Number = typename Inner<T>::Type;
  const auto read = [low, high](const nlohmann::json& json) -> std::optional<Number> {
    const bool fits = json.is_number_integer() &&
                      (!json.is_number_unsigned() ||
                       json.get<std::uint64_t>() <= std::uint64_t{std::numeric_limits<std::int64_t>::max()});
    const auto value = fits ? json.get<std::int64_t>() : low - 1;
    return value < low || value > high ? std::nullopt : std::optional(static_cast<Number>(value));
  };
  return make(about, Typed::number, fmt::format("a whole number from {} to {}", low, high), member, read);
}

template <class T>
Field number(const About& about, T Config::*member, std::string_view allowed, bool (*is_allowed)(double)) {
  const auto read = [is_allowed](const nlohmann::json& json) {
    const auto value = json.is_number() ? json.get<double>() : std::numeric_limits<double>::quiet_NaN();
    return std::isfinite(value) && is_allowed(value) ? std::optional(value) : std::nullopt;
  };
  return make(about, Typed::number, std::string(allowed), member, read);
}

template <class T>
Field text(
    const About& about, T Config::*member, std::string_view allowed = "a text",
    bool (*is_allowed)(const std::string&) = [](const std::string&) { return true; }) {
  const auto read = [is_allowed](const nlohmann::json& json) {
    return json.is_string() && is_allowed(json.get<std::string>()) ? std::optional(json.get<std::string>())
                                                                   : std::nullopt;
  };
  return make(about, Typed::text, std::string(allowed), member, read);
}

inline Field yes_no(const About& about, bool Config::*member) {
  return make(about, Typed::yes_no, "true or false", member, [](const nlohmann::json& json) {
    return json.is_boolean() ? std::optional(json.get<bool>()) : std::nullopt;
  });
}

inline Field list(const About& about, std::vector<std::string> Config::*member) {
  const auto read = [](const nlohmann::json& json) {
    const bool texts = json.is_array() && std::all_of(json.begin(), json.end(), [](const nlohmann::json& one) {
                         return one.is_string() && !one.get_ref<const std::string&>().empty();
                       });
    return texts ? std::optional(json.get<std::vector<std::string>>()) : std::nullopt;
  };
  return make(about, Typed::list, "a list of texts that are not empty", member, read);
}

inline Field named(Field field, std::vector<std::string> words) {
  field.allowed = fmt::format("one of {}", fmt::join(words, ", "));
  field.words = std::move(words);
  return field;
}

/// Words for an enum's values, in their order.
template <class Enum>
Field choice(const About& about, Enum Config::*member, const std::vector<std::string>& words) {
  auto field =
      named(make(about, Typed::text, "", member,
                 [words](const nlohmann::json& json) {
                   const auto found =
                       std::find_if(words.begin(), words.end(), [&](const std::string& word) { return json == word; });
                   return found == words.end() ? std::nullopt : std::optional(static_cast<Enum>(found - words.begin()));
                 }),
            words);
  field.get = [member, words](const Config& config) {
    return nlohmann::json(words[static_cast<std::size_t>(config.*member)]);
  };
  return field;
}

}  // namespace tutti::train
