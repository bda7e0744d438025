#include "train/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "train/test_folder.h"

namespace tutti::train {
namespace {

using testing::HasSubstr;

std::string why(std::string_view text) {
  const auto config = from_json(text);
  return config ? "no error" : config.error().message;
}

Config unusual() {
  Config config;
  config.data = {"a", "b c"};
  config.preset = "small";
  config.heads = 3;
  config.learning_rate = 0.1;
  config.optimizer = Optimizer::lamb;
  config.hook = Hook::fp16;
  config.batch_scaling = BatchScaling::square_root;
  config.reproducible = true;
  config.sample_prompt = "\"quoted\"\n";
  config.seed = 9223372036854775807U;
  return config;
}

TEST(Config, IsReadAsItIsWritten) {
  EXPECT_EQ(from_json(to_json(unusual()).dump()).value(), unusual());
  EXPECT_EQ(from_json(to_json(Config{}).dump()).value(), Config{});
  EXPECT_EQ(from_json("{}").value(), Config{});
}

TEST(Config, AFileHasWhatItHasAndTheRestStays) {
  const auto config = from_json(R"({"steps": 7, "hook": "bf16"})", unusual()).value();
  EXPECT_EQ(config.steps, 7);
  EXPECT_EQ(config.hook, Hook::bf16);
  EXPECT_EQ(config.heads, 3);
}

TEST(Config, UnknownKeysAreErrorsWithWhatWasMeant) {
  EXPECT_EQ(why(R"({"lerning_rate": 1})"), "no setting has the key \"lerning_rate\"; did you mean 'learning_rate'?");
  EXPECT_EQ(why(R"({"momentum": 1})"), "no setting has the key \"momentum\"");
}

TEST(Config, ValuesThatCannotBeAreErrorsWithWhatIsAllowed) {
  EXPECT_EQ(why(R"({"steps": "7"})"), "steps is \"7\", and must be a whole number from 1 to 1000000000000");
  EXPECT_EQ(why(R"({"beta2": 1})"), "beta2 is 1, and must be a number from 0 to below 1");
  EXPECT_EQ(why(R"({"preset": "huge"})"), "preset is \"huge\", and must be one of nano, micro, small, medium, 124M");
  EXPECT_EQ(why(R"({"optimizer": "adam"})"),
            "optimizer is \"adam\", and must be one of adamw, lamb; did you mean 'adamw'?");
  EXPECT_EQ(why(R"({"data": "book.txt"})"), "data is \"book.txt\", and must be a list of texts that are not empty");
  EXPECT_EQ(why(R"({"json": 1})"), "json is 1, and must be true or false");
  EXPECT_EQ(why(R"({"steps": 1, "steps": 2})"), "the key \"steps\" stands twice");
  EXPECT_EQ(why("[1]"), "expected an object, {...}, not [1]");
}

TEST(Config, IsKeptInAFile) {
  const TestFolder folder;
  ASSERT_TRUE(write_config(folder / "runs/a/train.json", unusual()).ok());
  EXPECT_EQ(read_config(folder / "runs/a/train.json").value(), unusual());
  EXPECT_THAT(read_config(folder / "none").error().message, HasSubstr("none: cannot read: No such file"));
  EXPECT_THAT(read_config(folder.write("bad", "{")).error().message, HasSubstr("bad: no JSON"));
  EXPECT_THAT(read_config(folder.path()).error().message, HasSubstr("cannot read: Is a directory"));
}

}  // namespace
}  // namespace tutti::train
