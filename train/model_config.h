#pragma once

#include <string>
#include <string_view>

#include "train/presets.h"
#include "tutti/base/error.h"

namespace tutti::train {

/// The `config.json` that stands beside a model's weights, for `transformers`: a GPT-2 whose tokens are bytes.
std::string model_config_text(const ModelSize& size);

/// What such a file says. Fails on a model that is no GPT-2, or one that computes otherwise: another vocabulary, other
/// functions. What it does not mention is as GPT-2 has it. An error is a sentence without the file's name. Pure.
Result<ModelSize> parse_model_config(std::string_view text);

/// The same for FOLDER/config.json. Blocks. An error names the file.
Result<ModelSize> read_model_config(const std::string& folder);

}  // namespace tutti::train
