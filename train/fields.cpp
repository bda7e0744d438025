#include "train/fields.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "train/field_kinds.h"
#include "train/nearest.h"
#include "train/strict_json.h"

namespace tutti::train {
namespace {

using Json = nlohmann::json;

bool is_name(const std::string& name) {
  return !name.empty() && name.size() <= 100 && name[0] != '.' && name[0] != '-' &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
                  c == '-';
         });
}

constexpr auto kNameRule = "letters, digits and . _ -, up to 100, not beginning with . or -";
constexpr std::int64_t kMany = 1'000'000'000'000;

std::vector<Field> make_table() {
  const auto above_0 = [](double x) { return x > 0; };
  const auto from_0 = [](double x) { return x >= 0; };
  const auto below_1 = [](double x) { return x >= 0 && x < 1; };
  const auto not_empty = [](const std::string& given) { return !given.empty(); };
  return {
      list({"data", "Files, folders, or - for standard input"}, &Config::data),
      text({"name", "What the run is called"}, &Config::name, kNameRule, is_name),
      text({"out", "Folder for what it writes (runs/NAME)"}, &Config::out, "a path", not_empty),
      yes_no({"json", "Print lines of JSON"}, &Config::json),
      yes_no({"record", "Keep figures for the report"}, &Config::record),
      whole({"save_interval", "Steps between saves (0: one at the end)"}, &Config::save_interval, 0, kMany),
      text({"weights", "Folder with weights to begin with (drawn from the seed)"}, &Config::weights, "a path",
           not_empty),
      named(text({"preset", "Size of the model"}, &Config::preset, "",
                 [](const std::string& name) { return find_preset(name) != nullptr; }),
            preset_names()),
      whole({"layers", "Layers (the preset's)"}, &Config::layers, 1, 1000),
      whole({"heads", "Heads of attention (the preset's)"}, &Config::heads, 1, 1000),
      whole({"width", "Width of the model (the preset's)"}, &Config::width, 1, 100'000),
      whole({"context", "Tokens that it sees at once (the preset's)"}, &Config::context, 1, 1'000'000),
      whole({"steps", "Steps of the optimizer"}, &Config::steps, 1, kMany),
      whole({"batch_tokens", "Tokens in a step, of all ranks (2048, or the next that fits)"}, &Config::batch_tokens, 1,
            kMany),
      whole({"accumulation", "Passes of each rank whose gradients are added up for a step"}, &Config::accumulation, 1,
            1'000'000),
      whole({"seed", "What weights and order of the data are drawn from"}, &Config::seed, 0,
            std::numeric_limits<std::int64_t>::max()),
      choice({"optimizer", "What makes steps of gradients"}, &Config::optimizer, {"adamw", "lamb"}),
      number({"beta1", "Part of the mean that a step keeps"}, &Config::beta1, "a number from 0 to below 1", below_1),
      number({"beta2", "The same for the mean square"}, &Config::beta2, "a number from 0 to below 1", below_1),
      number({"weight_decay", "How weights are drawn to 0"}, &Config::weight_decay, "a number, 0 or more", from_0),
      number({"clip", "Largest norm of the gradient (0: any)"}, &Config::clip, "a number, 0 or more", from_0),
      number({"learning_rate", "After warm-up (the preset's)"}, &Config::learning_rate, "a number above 0", above_0),
      number({"minimum_rate", "Where decay ends (a tenth of the learning rate)"}, &Config::minimum_rate,
             "a number, 0 or more", from_0),
      whole({"warmup_steps", "Steps in which the rate rises (a tenth)"}, &Config::warmup_steps, 0, kMany),
      choice({"decay", "How the rate falls after that"}, &Config::decay, {"none", "linear", "cosine"}),
      choice({"batch_scaling", "How the rate follows the batch"}, &Config::batch_scaling,
             {"none", "linear", "square_root"}),
      whole({"base_batch_tokens", "The batch that the rate is right for"}, &Config::base_batch_tokens, 1, kMany),
      choice({"precision", "Of weights and gradients"}, &Config::precision, {"float32", "bfloat16"}),
      yes_no({"reproducible", "Equal bits for any number of ranks"}, &Config::reproducible),
      choice({"hook", "How gradients travel"}, &Config::hook, {"none", "bf16", "fp16"}),
      whole({"ranks", "Number of ranks (as many as there are cores for)"}, &Config::ranks, 1, 1024),
      text({"mesh", "Arrangement of the ranks"}, &Config::mesh, "axes with sizes, like dp=4", not_empty),
      number({"evaluation_share", "Part of the data that is not trained on"}, &Config::evaluation_share,
             "a number from 0 to 0.5", [](double x) { return x >= 0 && x <= 0.5; }),
      whole({"evaluation_interval", "Steps between evaluations (0: one at the end)"}, &Config::evaluation_interval, 0,
            kMany),
      text({"sample_prompt", "What the sample at the end begins with"}, &Config::sample_prompt),
      whole({"sample_length", "Bytes of that sample (0: none)"}, &Config::sample_length, 0, 1'000'000),
  };
}

}  // namespace

std::span<const Field> fields() {
  static const auto kTable = make_table();
  return kTable;
}

const Field* find_field(std::string_view key) {
  const auto all = fields();
  const auto found = std::find_if(all.begin(), all.end(), [&](const Field& field) { return field.key == key; });
  return found == all.end() ? nullptr : &*found;
}

std::vector<std::string> field_keys() {
  std::vector<std::string> keys;
  for (const auto& field : fields()) {
    keys.emplace_back(field.key);
  }
  return keys;
}

Status set(Config& config, const Field& field, const Json& value, std::string_view name) {
  if (field.put(config, value)) {
    return {};
  }
  const auto meant = value.is_string() ? did_you_mean(value.get_ref<const std::string&>(), field.words) : "";
  return Error{Code::invalid_argument,
               fmt::format("{} is {}, and must be {}{}", name, shown(value), field.allowed, meant)};
}

std::string flag_of(const Field& field) {
  auto flag = "--" + std::string(field.key);
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

}  // namespace tutti::train
