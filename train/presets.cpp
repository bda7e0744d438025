#include "train/presets.h"

#include <algorithm>
#include <array>

namespace tutti::train {
namespace {

constexpr std::array kPresets{
    Preset{"nano", {.layers = 2, .heads = 4, .width = 128, .context = 128}, 4e-3, "a minute; to see that it learns"},
    Preset{"micro", {.layers = 4, .heads = 4, .width = 256, .context = 256}, 2e-3, "minutes on a few cores"},
    Preset{"small", {.layers = 6, .heads = 6, .width = 384, .context = 256}, 1e-3, "an hour on a few cores"},
    Preset{"medium", {.layers = 8, .heads = 8, .width = 512, .context = 512}, 6e-4, "many cores"},
    Preset{"124M", {.layers = 12, .heads = 12, .width = 768, .context = 1024}, 6e-4, "GPT-2's smallest"},
};

}  // namespace

std::int64_t ModelSize::parameters() const {
  const auto norm = 2 * width;
  const auto attention = width * 3 * width + 3 * width + width * width + width;
  const auto feed_forward = 2 * width * 4 * width + 4 * width + width;
  return kVocabulary * width + context * width + layers * (2 * norm + attention + feed_forward) + norm;
}

std::span<const Preset> presets() { return kPresets; }

const Preset* find_preset(std::string_view name) {
  const auto* const found =
      std::find_if(kPresets.begin(), kPresets.end(), [&](const Preset& preset) { return preset.name == name; });
  return found == kPresets.end() ? nullptr : found;
}

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  for (const auto& preset : kPresets) {
    names.emplace_back(preset.name);
  }
  return names;
}

}  // namespace tutti::train
