#include "train/flags.h"

#include <charconv>
#include <cmath>
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

/// As launchers have it.
constexpr std::pair<std::string_view, std::string_view> kShortFlag{"ranks", "-n"};

constexpr const char* kExamples =
    "Examples:\n"
    "  tutti train --data book.txt --preset micro --steps 1000\n"
    "  tutti train -n 4 --data texts/ --batch-tokens 16384 --name larger\n"
    "  tutti train --config runs/larger/train.json --seed 2 --name again\n"
    "  tutti train --config runs/larger/train.json --resume     goes on after Ctrl-C\n"
    "\n"
    "Exit code: 0 when it finished; 2 for what cannot be; 130 after Ctrl-C; else 1.";

/// A number as a file would have it; what is none stays a text, which the field then refuses.
Json number_of(const std::string& text) {
  const auto parsed = [&](auto value) -> Json {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool whole = error == std::errc{} && end == text.data() + text.size();
    return whole && std::isfinite(static_cast<double>(value)) ? Json(value) : Json();
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
      field.key == kShortFlag.first ? fmt::format("{},{}", kShortFlag.second, flag) : flag,
      [](const CLI::results_t&) { return true; }, help);
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
    const auto& [name, size, rate, for_what] = *find_preset(config.preset);
    if (config.minimum_rate == rate / 10) {
      config.minimum_rate.reset();
    }
    if (config.learning_rate == rate) {
      config.learning_rate.reset();
    }
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
  std::vector<std::string> flags{"--config", "--help", "--resume"};
  for (const auto& field : fields()) {
    flags.push_back(flag_of(field));
  }
  return {Code::invalid_argument, fmt::format("there is no option {}{}", shown(argument),
                                              did_you_mean(argument.substr(0, argument.find('=')), flags))};
}

/// The parser with all that can be typed.
struct Parser {
  explicit Parser(Flags& flags);

  CLI::App app{"Train a byte-level GPT on text: tutti train [OPTIONS]", "tutti train"};
  std::vector<std::pair<const Field*, CLI::Option*>> options;
};

Parser::Parser(Flags& flags) {
  app.add_option("--config", flags.file, "Read settings from a file of JSON; flags override them")->type_name("FILE");
  app.add_flag("--resume", flags.resume, "Go on from what the folder of --config, or of --out, holds");
  for (const auto& field : fields()) {
    options.emplace_back(&field, declare(app, field));
  }
  app.footer(kExamples);
  app.allow_extras();
}

Given given_to(const Parser& parser) {
  Given given;
  for (const auto& [field, option] : parser.options) {
    if (option->count() > 0) {
      given[field->key] = value_of(*field, option->results());
    }
  }
  return given;
}

/// Which file is read: that of --config, or the one in the folder to go on from.
std::string file_of(const Flags& flags, const Given& given) {
  if (!flags.file.empty() || !flags.resume) {
    return flags.file;
  }
  const auto text = [&](const char* key) { return given.contains(key) ? given.at(key).get<std::string>() : ""; };
  const auto name = given.contains("name") ? text("name") : Config{}.name;
  return (given.contains("out") ? text("out") : "runs/" + name) + "/train.json";
}

/// Whether the user named the folder to write to. A file that lies in it was written there, and means itself; who goes
/// on does so where the file is now.
bool names_folder(const Flags& flags, const Given& given) {
  const auto& out = flags.config.out;
  return given.contains("out") ||
         (!flags.resume && out && *out != "runs/" + flags.config.name && flags.file != *out + "/train.json");
}

Status take(Flags& flags, const Given& given) {
  flags.file = file_of(flags, given);
  if (!flags.file.empty()) {
    auto config = read_config(flags.file);
    if (!config) {
      return config.error();
    }
    flags.config = std::move(config).value();
  }
  forget_what_followed(flags.config, given);
  for (const auto& [key, value] : given) {
    const auto* const field = find_field(key);
    if (auto done = set(flags.config, *field, value, flag_of(*field)); !done) {
      return done;
    }
  }
  flags.out_named = names_folder(flags, given);
  return {};
}

}  // namespace

Result<Flags> parse_flags(const std::vector<std::string>& arguments) {
  Flags flags;
  Parser parser(flags);
  try {
    parser.app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));  // it takes them from the back
  } catch (const CLI::CallForHelp&) {
    return Flags{.help = parser.app.help()};
  } catch (const CLI::ParseError& error) {
    return Error{Code::invalid_argument, error.what()};
  }
  if (const auto extras = parser.app.remaining(); !extras.empty()) {
    return unknown(extras.front());
  }
  if (const auto taken = take(flags, given_to(parser)); !taken) {
    return taken.error();
  }
  return flags;
}

}  // namespace tutti::train
