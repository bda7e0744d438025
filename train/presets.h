#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tutti::train {

inline constexpr std::int64_t kVocabulary = 256;  ///< a token is a byte; 0 ends a document

/// What a GPT's number of parameters follows from.
struct ModelSize {
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  std::int64_t width = 0;
  std::int64_t context = 0;  ///< tokens that it sees at once
  bool operator==(const ModelSize&) const = default;

  /// Weights and biases in GPT-2's layout, whose output shares the weights of its input.
  std::int64_t parameters() const;
};

struct Preset {
  std::string_view name;
  ModelSize size;
  double learning_rate = 0;  ///< that it learns well with, in batches of the usual size
  std::string_view for_what;
};

/// From small to large. Names with a number are those of GPT-2's sizes, counted with its vocabulary of 50,257: with
/// bytes they are smaller by that.
std::span<const Preset> presets();

/// Null when there is none of that name.
const Preset* find_preset(std::string_view name);
std::vector<std::string> preset_names();

}  // namespace tutti::train
