#include "train/presets.h"

#include <gtest/gtest.h>

namespace tutti::train {
namespace {

TEST(Presets, GetLarger) {
  std::int64_t last = 0;
  for (const auto& preset : presets()) {
    EXPECT_GT(preset.size.parameters(), last) << preset.name;
    EXPECT_EQ(preset.size.width % preset.size.heads, 0) << preset.name;
    last = preset.size.parameters();
  }
}

TEST(Presets, CountParametersAsGpt2Does) {
  const auto* const preset = find_preset("124M");
  ASSERT_NE(preset, nullptr);
  // GPT-2's smallest has 124,439,808 with a vocabulary of 50,257.
  EXPECT_EQ(preset->size.parameters() + (50257 - kVocabulary) * preset->size.width, 124439808);
}

TEST(Presets, AreFoundByName) {
  EXPECT_EQ(find_preset("nano")->size.width, 128);
  EXPECT_EQ(find_preset("Nano"), nullptr);
  EXPECT_EQ(preset_names().size(), presets().size());
}

}  // namespace
}  // namespace tutti::train
