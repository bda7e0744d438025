#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "train/presets.h"
#include "tutti/base/error.h"

namespace tutti::train {

enum class Optimizer { adamw, lamb };
enum class Decay { none, linear, cosine };
enum class BatchScaling { none, linear, square_root };
enum class Precision { float32, bfloat16 };
enum class Hook { none, bf16, fp16 };

/// Everything that the job can be told, by flags (--learning-rate) or by a file (learning_rate). What each means, and
/// what it may be, is in the table of fields.cpp. What is optional follows from the others until it is given.
struct Config {
  std::vector<std::string> data = {};
  std::string name = "train";
  std::optional<std::string> out = {};  ///< runs/<name>
  bool json = false;
  bool record = true;                       ///< keep figures for the report
  std::int64_t save_interval = 500;         ///< 0: at the end alone
  std::optional<std::string> weights = {};  ///< a folder with some to begin with; without, they are drawn

  std::string preset = "nano";
  std::optional<std::int64_t> layers = {};  ///< the preset's, as are the next three
  std::optional<std::int64_t> heads = {};
  std::optional<std::int64_t> width = {};
  std::optional<std::int64_t> context = {};

  std::int64_t steps = 800;
  std::optional<std::int64_t> batch_tokens = {};  ///< the first number from 2,048 on that fits; of all ranks and passes
  std::int64_t accumulation = 1;
  std::uint64_t seed = 1;

  Optimizer optimizer = Optimizer::adamw;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double weight_decay = 0.1;
  double clip = 1;  ///< 0: gradients are not clipped

  std::optional<double> learning_rate = {};       ///< the preset's
  std::optional<double> minimum_rate = {};        ///< a tenth of the rate
  std::optional<std::int64_t> warmup_steps = {};  ///< a tenth of the steps
  Decay decay = Decay::cosine;
  BatchScaling batch_scaling = BatchScaling::none;
  std::int64_t base_batch_tokens = 2048;

  Precision precision = Precision::float32;
  bool reproducible = false;
  Hook hook = Hook::none;
  std::optional<int> ranks = {};  ///< as many as there are cores for, or as the mesh says
  std::string mesh = "dp=*";

  double evaluation_share = 0.05;
  std::int64_t evaluation_interval = 100;  ///< 0: at the end alone

  std::string sample_prompt = "The ";
  std::int64_t sample_length = 300;  ///< 0: no sample

  bool operator==(const Config&) const = default;
};

/// The preset's size with what was given in its place.
ModelSize model_size(const Config& config);

/// One object, flat, every key in it; what is optional and not given is null.
nlohmann::ordered_json to_json(const Config& config);

/// What the text says in place of what `config` has. An unknown key, or a value that cannot be, is an error that names
/// the key, what was given and what is allowed.
Result<Config> from_json(std::string_view text, Config config = {});

/// The same for a file. Blocks. Errors name the path.
Result<Config> read_config(const std::string& path);

/// In place of what was there; see write_whole. Blocks.
Status write_config(const std::string& path, const Config& config);

/// The configuration that `ranks` ranks train with: all that is optional has its value, and all fits together. An error
/// names what does not, and what would. Pure.
Result<Config> settle(Config config, int ranks);

/// Forward and backward passes that make a step, of all ranks together. Reproducible ones are as many for any number of
/// ranks.
std::int64_t passes(const Config& config, int ranks);

}  // namespace tutti::train
