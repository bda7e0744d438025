#include "train/flags.h"

#include <charconv>
#include <map>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "train/fields.h"
#include "train/nearest.h"
#include "train/strict_json.h"

namespace tutti::train {
namespace {

using Json = nlohmann::json;
using Given = std::map<std::string_view, Json>;  // by key

constexpr const char* kExamples =
    "Examples:\n"
    "  tutti train --data book.txt --preset micro --steps 1000\n"
    "  tutti train -n 4 --data texts/ --batch-tokens 16384 --name larger\n"
    "  tutti train --config runs/larger/train.json --seed 2 --name again";

/// A number as a file would have it; what is none stays a text, which the field then refuses.
Json number_of(const std::string& text) {
  const auto parsed = [&](auto value) -> Json {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc{} && end == text.data() + text.size() ? Json(value) : Json();
  };
  for (const auto& value : {parsed(std::int64_t{}), parsed(double{})}) {
    if (!value.is_null()) {
      return value;
    }
  }
  return text;
}

CLI::Option* declare(CLI::App& app, const Field& field) {
  const auto flag = flag_of(field);
  const auto help =
      std::string(field.help) + (field.words.empty() ? "" : fmt::format(": {}", fmt::join(field.words, ", ")));
  if (field.typed == Typed::yes_no) {
    return app.add_flag(flag + ",!--no-" + flag.substr(2), help);
  }
  // Words are read from the option afterwards, as they were typed.
  auto* const option = app.add_option(
      flag, [](const CLI::results_t&) { return true; }, help);
  if (field.typed == Typed::list) {
    option->expected(-1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  }
  if (!field.optional && field.typed == Typed::number) {
    option->default_str(shown(field.get(Config{})));
  } else if (!field.words.empty()) {
    option->default_str(field.get(Config{}).get<std::string>());
  }
  return option->type_name(field.typed == Typed::number ? "NUMBER" : "TEXT");
}

/// What was typed, as a file would have it.
Json value_of(const Field& field, const std::vector<std::string>& words) {
  switch (field.typed) {
    case Typed::list: return words;
    case Typed::number: return number_of(words.back());
    case Typed::yes_no:
      return words.back() == "true" ? Json(true) : words.back() == "false" ? Json(false) : Json(words.back());
    case Typed::text: break;
  }
  return words.back();
}

/// Takes back what follows from a preset or a name that a flag is about to replace.
void forget_what_followed(Config& config, const Given& given) {
  if (given.contains("preset")) {
    const auto& size = find_preset(config.preset)->size;
    for (const auto& [member, value] :
         {std::pair(&Config::layers, size.layers), std::pair(&Config::heads, size.heads),
          std::pair(&Config::width, size.width), std::pair(&Config::context, size.context)}) {
      if (config.*member == value) {
        (config.*member).reset();
      }
    }
  }
  if (given.contains("name") && config.out == "runs/" + config.name) {
    config.out.reset();
  }
}

Error unknown(const std::string& argument) {
  std::vector<std::string> flags{"--config", "--help"};
  for (const auto& field : fields()) {
    flags.push_back(flag_of(field));
  }
  return {Code::invalid_argument, fmt::format("there is no option {}{}", shown(argument),
                                              did_you_mean(argument.substr(0, argument.find('=')), flags))};
}

}  // namespace

Result<Flags> parse_flags(const std::vector<std::string>& arguments) {
  CLI::App app("Train a byte-level GPT on text: tutti train [OPTIONS]", "tutti train");
  std::string file;
  app.add_option("--config", file, "Read settings from a file of JSON; flags override them")->type_name("FILE");
  std::vector<std::pair<const Field*, CLI::Option*>> options;
  for (const auto& field : fields()) {
    options.emplace_back(&field, declare(app, field));
  }
  app.footer(kExamples);
  app.allow_extras();
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));  // it takes them from the back
  } catch (const CLI::CallForHelp&) {
    return Flags{.help = app.help()};
  } catch (const CLI::ParseError& error) {
    return Error{Code::invalid_argument, error.what()};
  }
  if (const auto extras = app.remaining(); !extras.empty()) {
    return unknown(extras.front());
  }
  Given given;
  for (const auto& [field, option] : options) {
    if (option->count() > 0) {
      given[field->key] = value_of(*field, option->results());
    }
  }
  Flags flags;
  if (!file.empty()) {
    auto config = read_config(file);
    if (!config) {
      return config.error();
    }
    flags.config = std::move(config).value();
  }
  forget_what_followed(flags.config, given);
  for (const auto& [key, value] : given) {
    const auto* const field = find_field(key);
    if (const auto done = set(flags.config, *field, value, flag_of(*field)); !done) {
      return done.error();
    }
  }
  return flags;
}

}  // namespace tutti::train
