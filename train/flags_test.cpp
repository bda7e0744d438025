#include "train/flags.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "train/fields.h"
#include "train/strict_json.h"
#include "train/test_folder.h"

namespace tutti::train {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string why(const std::vector<std::string>& arguments) {
  const auto flags = parse_flags(arguments);
  return flags ? "no error" : flags.error().message;
}

Config parsed(const std::vector<std::string>& arguments) {
  auto flags = parse_flags(arguments);
  EXPECT_TRUE(flags.ok()) << flags.error().message;
  return flags.value().config;
}

TEST(Flags, SetWhatTheyName) {
  const auto config = parsed({"--data", "a", "b", "--steps", "7", "--learning-rate=3e-4", "--preset", "micro", "--json",
                              "--data", "c", "--hook", "bf16", "--sample-prompt", "", "--clip", "2"});
  EXPECT_THAT(config.data, ElementsAre("a", "b", "c"));
  EXPECT_EQ(config.steps, 7);
  EXPECT_EQ(config.learning_rate, 3e-4);
  EXPECT_EQ(config.preset, "micro");
  EXPECT_TRUE(config.json);
  EXPECT_EQ(config.hook, Hook::bf16);
  EXPECT_EQ(config.sample_prompt, "");
  EXPECT_EQ(config.clip, 2);
  EXPECT_EQ(parsed({}), Config{});
  EXPECT_FALSE(parsed({"--json=false"}).json);
  EXPECT_FALSE(parsed({"--json", "--no-json"}).json);
  EXPECT_EQ(parsed({"--sample-prompt", "[a,b]"}).sample_prompt, "[a,b]");
  EXPECT_THAT(parsed({"--data", "-"}).data, ElementsAre("-"));
}

TEST(Flags, RanksAndGoingOn) {
  const TestFolder folder;
  const auto file = folder.write("train.json", R"({"steps": 7})");
  auto flags = parse_flags({"-n", "3", "--resume", "--out", folder.path()}).value();
  EXPECT_EQ(flags.config.ranks, 3);
  EXPECT_TRUE(flags.resume);
  EXPECT_EQ(flags.file, file);
  EXPECT_EQ(flags.config.steps, 7);
  EXPECT_FALSE(parsed({}).ranks.has_value());
  EXPECT_EQ(why({"-n", "0"}), "--ranks is 0, and must be a whole number from 1 to 1024");
  EXPECT_THAT(why({"--resume", "--name", "nobody"}), HasSubstr("runs/nobody/train.json: cannot read"));
}

TEST(Flags, RanksAreASettingLikeOthers) {
  const TestFolder folder;
  const auto file = folder.write("c.json", R"({"ranks": 5})");
  EXPECT_EQ(parsed({"--config", file}).ranks, 5);
  EXPECT_EQ(parsed({"--config", file, "-n", "3"}).ranks, 3);
  EXPECT_EQ(parsed({"--ranks=3", "--config", file}).ranks, 3);
  EXPECT_FALSE(parsed({"--config", folder.write("n.json", R"({"ranks": null})")}).ranks.has_value());
  for (const char* value : {"0", "1025", "2.5", "\"two\""}) {
    EXPECT_THAT(why({"--config", folder.write("w.json", fmt::format(R"({{"ranks": {}}})", value))}),
                HasSubstr(fmt::format("w.json: ranks is {}, and must be a whole number from 1 to 1024", value)));
  }
}

TEST(Flags, TheFolderIsNamedByAFlagOrByAFileThatIsNoRunsOwn) {
  const TestFolder folder;
  const auto named = [](const std::vector<std::string>& arguments) { return parse_flags(arguments).value().out_named; };
  EXPECT_FALSE(named({}));
  EXPECT_TRUE(named({"--out", "x"}));
  const auto own = folder.write("train.json", nlohmann::json{{"out", folder.path()}}.dump());
  EXPECT_FALSE(named({"--config", own}));
  EXPECT_TRUE(named({"--config", folder.write("other.json", R"({"out": "somewhere"})")}));
  EXPECT_FALSE(named({"--config", folder.write("usual.json", R"({"out": "runs/train"})")}));
}

TEST(Flags, OverrideTheFileWhereverTheyStand) {
  const TestFolder folder;
  const auto file = folder.write("c.json", R"({"steps": 7, "json": true, "seed": 5, "data": ["x"]})");
  for (const auto& arguments : {std::vector<std::string>{"--config", file, "--steps", "9", "--no-json", "--data", "y"},
                                {"--steps", "9", "--no-json", "--data", "y", "--config", file}}) {
    const auto config = parsed(arguments);
    EXPECT_EQ(config.steps, 9);
    EXPECT_FALSE(config.json);
    EXPECT_EQ(config.seed, 5U);
    EXPECT_THAT(config.data, ElementsAre("y"));
  }
}

TEST(Flags, AnotherPresetOrNameTakesWithItWhatFollowed) {
  const TestFolder folder;
  const auto file = folder / "train.json";
  Config earlier{.name = "first", .preset = "micro", .heads = 8};
  ASSERT_TRUE(write_config(file, settle(earlier, 2).value()).ok());
  EXPECT_EQ(parsed({"--config", file}), settle(earlier, 2).value());
  const auto config = parsed({"--config", file, "--preset", "medium", "--name", "second"});
  EXPECT_EQ(config.heads, 8) << "was meant";
  EXPECT_EQ(model_size(config).width, 512) << "followed from the preset";
  EXPECT_EQ(settle(config, 2).value().out, "runs/second");
}

TEST(Flags, ErrorsNameTheFlag) {
  EXPECT_EQ(why({"--steps", "many"}), "--steps is \"many\", and must be a whole number from 1 to 1000000000000");
  EXPECT_EQ(why({"--steps", "1.5"}), "--steps is 1.5, and must be a whole number from 1 to 1000000000000");
  EXPECT_THAT(why({"--preset", "nanno"}), HasSubstr("did you mean 'nano'?"));
  EXPECT_EQ(why({"--lerning-rate", "1"}), "there is no option \"--lerning-rate\"; did you mean '--learning-rate'?");
  EXPECT_EQ(why({"--step=1"}), "there is no option \"--step=1\"; did you mean '--steps'?");
  EXPECT_EQ(why({"book.txt"}), "there is no option \"book.txt\"");
  EXPECT_THAT(why({"--steps"}), HasSubstr("--steps"));
  EXPECT_THAT(why({"--steps", "1", "--steps", "2"}), HasSubstr("--steps"));
  EXPECT_THAT(why({"--config", "/none.json"}), HasSubstr("/none.json: cannot read"));
}

TEST(Flags, WhatIsNoNumberIsShownAsItWasTyped) {
  for (const std::string text : {"nan", "NaN", "-nan", "nan(7)", "inf", "-inf", "Infinity", "1e999", "0x10", "7 "}) {
    const auto shown_text = shown(nlohmann::json(text));
    EXPECT_EQ(why({"--learning-rate=" + text}), "--learning-rate is " + shown_text + ", and must be a number above 0");
    EXPECT_THAT(why({"--steps=" + text}), testing::StartsWith("--steps is " + shown_text + ", and must be a whole"));
  }
}

TEST(Flags, HelpNamesEveryFlagAndWhatItIsWithout) {
  const auto help = parse_flags({"--help"}).value().help;
  for (const auto& field : fields()) {
    EXPECT_THAT(help, HasSubstr(flag_of(field)));
  }
  EXPECT_THAT(help, HasSubstr("nano, micro, small, medium, 124M"));
  EXPECT_THAT(help, HasSubstr("--steps NUMBER=800"));
  EXPECT_THAT(help, HasSubstr("--decay TEXT=cosine"));
}

}  // namespace
}  // namespace tutti::train
