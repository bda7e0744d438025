#include "train/model_config.h"

#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "train/files.h"
#include "train/strict_json.h"

namespace tutti::train {
namespace {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

constexpr std::int64_t kMost = 1'000'000;
constexpr std::int64_t kMostLayers = 1000;

Error bad(std::string sentence) { return {Code::invalid_argument, std::move(sentence)}; }

/// What must be as it is here, or a model with the same weights would compute something else.
OrderedJson fixed_settings() {
  return {{"model_type", "gpt2"},
          {"vocab_size", kVocabulary},
          {"activation_function", "gelu_new"},
          {"layer_norm_epsilon", 1e-5},
          {"tie_word_embeddings", true},
          {"scale_attn_weights", true},
          {"scale_attn_by_inverse_layer_idx", false},
          {"add_cross_attention", false}};
}

std::optional<std::int64_t> length(const Json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_number_integer() || *found < 1 ||
      *found > (std::string_view(key) == "n_layer" ? kMostLayers : kMost)) {
    return std::nullopt;
  }
  return found->get<std::int64_t>();
}

Status check_fixed(const Json& json) {
  const auto settings = fixed_settings();
  for (const auto& [key, value] : settings.items()) {
    const auto found = json.find(key);
    const bool missing = found == json.end();
    if (missing && (key == "model_type" || key == "vocab_size")) {
      return bad(fmt::format("says no {}, which must be {}", key, value.dump()));
    }
    if (!missing && *found != Json(value)) {
      return bad(fmt::format("{} is {}, and must be {} to be trained here", key, shown(*found), value.dump()));
    }
  }
  if (const auto inner = json.find("n_inner"); inner != json.end() && !inner->is_null() && json.contains("n_embd") &&
                                               *inner != 4 * json.value("n_embd", std::int64_t{0})) {
    return bad(fmt::format("n_inner is {}, and must be four times n_embd", shown(*inner)));
  }
  return {};
}

}  // namespace

std::string model_config_text(const ModelSize& size) {
  OrderedJson json{{"architectures", {"GPT2LMHeadModel"}}};
  json.update(fixed_settings());
  json.update(OrderedJson{{"n_positions", size.context},
                          {"n_ctx", size.context},
                          {"n_embd", size.width},
                          {"n_layer", size.layers},
                          {"n_head", size.heads},
                          {"n_inner", nullptr},
                          {"attn_pdrop", 0.0},
                          {"embd_pdrop", 0.0},
                          {"resid_pdrop", 0.0},
                          {"bos_token_id", 0},
                          {"eos_token_id", 0}});
  return json.dump(2) + "\n";
}

Result<ModelSize> parse_model_config(std::string_view text) {
  const auto parsed = parse_strictly(text);
  if (!parsed) {
    return parsed.error();
  }
  const auto& json = parsed.value();
  if (!json.is_object()) {
    return bad(fmt::format("expected an object, {{...}}, not {}", shown(json)));
  }
  if (auto fits = check_fixed(json); !fits) {
    return fits.error();
  }
  ModelSize size;
  for (const auto& [key, member] :
       {std::pair("n_layer", &ModelSize::layers), std::pair("n_head", &ModelSize::heads),
        std::pair("n_embd", &ModelSize::width), std::pair("n_positions", &ModelSize::context)}) {
    const auto value = length(json, key);
    if (!value) {
      return bad(fmt::format("{} is {}, and must be a whole number from 1 to {}", key,
                             json.contains(key) ? shown(json[key]) : "missing", kMost));
    }
    size.*member = *value;
  }
  if (size.width % size.heads != 0) {
    return bad(fmt::format("n_head is {}, which does not divide n_embd, {}", size.heads, size.width));
  }
  return size;
}

Result<ModelSize> read_model_config(const std::string& folder) {
  const auto path = folder + "/config.json";
  const auto text = read_file(path);
  if (!text) {
    return text.error();
  }
  auto size = parse_model_config(text.value());
  if (!size) {
    return Error{size.error().code, fmt::format("{}: {}", path, size.error().message)};
  }
  return size;
}

}  // namespace tutti::train
