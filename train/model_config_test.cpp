#include "train/model_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "train/test_folder.h"

namespace tutti::train {
namespace {

using testing::HasSubstr;

constexpr ModelSize kSize{.layers = 3, .heads = 5, .width = 35, .context = 17};

std::string why(std::string_view text) {
  const auto size = parse_model_config(text);
  return size ? "no error" : size.error().message;
}

/// What is written, with one text in place of another.
std::string changed(const std::string& from, const std::string& to) {
  auto text = model_config_text(kSize);
  const auto at = text.find(from);
  EXPECT_NE(at, text.npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(ModelConfig, ComesBackAsItWas) { EXPECT_EQ(parse_model_config(model_config_text(kSize)).value(), kSize); }

TEST(ModelConfig, OthersMaySayMoreOrLess) {
  EXPECT_EQ(parse_model_config(R"({"model_type": "gpt2", "vocab_size": 256, "n_layer": 3, "n_head": 5, "n_embd": 35,
                                   "n_positions": 17, "n_inner": 140, "summary_type": "cls_index", "use_cache": true})")
                .value(),
            kSize);
}

TEST(ModelConfig, SaysWhatDoesNotFit) {
  EXPECT_THAT(why(changed("\"gpt2\"", "\"llama\"")), HasSubstr("model_type is \"llama\", and must be \"gpt2\""));
  EXPECT_THAT(why(changed("256", "50257")), HasSubstr("vocab_size is 50257, and must be 256"));
  EXPECT_THAT(why(changed("gelu_new", "relu")), HasSubstr("activation_function is \"relu\""));
  EXPECT_THAT(why(changed("\"n_layer\": 3", "\"n_layer\": 0")), HasSubstr("n_layer is 0"));
  EXPECT_THAT(why(changed("\"n_layer\"", "\"layers\"")), HasSubstr("n_layer is missing"));
  EXPECT_THAT(why(changed("\"n_head\": 5", "\"n_head\": 4")), HasSubstr("n_head is 4, which does not divide"));
  EXPECT_THAT(why(changed("\"n_inner\": null", "\"n_inner\": 99")), HasSubstr("n_inner is 99"));
  EXPECT_THAT(why("[]"), HasSubstr("expected an object"));
  EXPECT_THAT(why("{}"), HasSubstr("says no model_type"));
}

TEST(ModelConfig, NamesTheFile) {
  const TestFolder folder;
  EXPECT_THAT(read_model_config(folder.path()).error().message, HasSubstr("config.json: cannot read"));
  folder.write("config.json", "{");
  EXPECT_THAT(read_model_config(folder.path()).error().message, HasSubstr(folder / "config.json"));
}

}  // namespace
}  // namespace tutti::train
