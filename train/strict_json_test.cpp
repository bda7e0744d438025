#include "train/strict_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace tutti::train {
namespace {

using testing::HasSubstr;

TEST(StrictJson, ReadsWhatIsRight) {
  const auto value = parse_strictly(R"({"a": {"x": 1}, "b": {"x": [2, null]}, "c": "d"})");
  ASSERT_TRUE(value.ok()) << value.error().message;
  EXPECT_EQ(value.value()["b"]["x"][0], 2) << "equal keys of different objects are no matter";
}

TEST(StrictJson, AKeyStandsOnce) {
  EXPECT_THAT(parse_strictly(R"({"a": 1, "b": {"c": 1, "c": 2}})").error().message, HasSubstr("\"c\" stands twice"));
  EXPECT_THAT(parse_strictly(R"({"a": 1, "\u0061": 2})").error().message, HasSubstr("\"a\" stands twice"));
}

TEST(StrictJson, DepthHasAnEnd) {
  EXPECT_TRUE(parse_strictly(std::string(32, '[') + std::string(32, ']')).ok());
  EXPECT_THAT(parse_strictly(std::string(1 << 20, '[')).error().message, HasSubstr("nested deeper than 32"));
}

TEST(StrictJson, WhatIsNoJsonIsSaidWithItsPlace) {
  EXPECT_EQ(parse_strictly(R"({"a": 1,})").error().message, "no JSON: byte 9 makes no sense");
  for (const char* text : {"", "{", "{}}", "nul", "\"\xff\"", "[1e999]"}) {
    EXPECT_FALSE(parse_strictly(text).ok()) << text;
  }
}

TEST(StrictJson, WhatIsNoNumberIsSaidWithItsKey) {
  EXPECT_EQ(parse_strictly(R"({"steps": 7, "clip": NaN})").error().message, "clip is NaN, which is no number");
  EXPECT_EQ(parse_strictly(R"({"clip": -Infinity})").error().message, "clip is -Infinity, which is no number");
  EXPECT_EQ(parse_strictly(R"({"clip": inf, "steps": 7})").error().message, "clip is inf, which is no number");
  EXPECT_EQ(parse_strictly(R"({"clip": 1e999})").error().message, "clip is 1e999, which is too large a number");
  EXPECT_EQ(parse_strictly(R"({"clip": -1e999})").error().message, "clip is -1e999, which is too large a number");
  EXPECT_THAT(parse_strictly(R"({"\u001b": nan})").error().message, HasSubstr("\\u001b"));
}

TEST(StrictJson, ValuesAreShownShortAndHarmless) {
  EXPECT_EQ(shown(nlohmann::json(std::string("\x1b[31m\x7f"))), "\"\\u001b[31m\\u007f\"");
  EXPECT_EQ(shown(nlohmann::json("\xff")), "\"\\ufffd\"");
  EXPECT_EQ(shown(nlohmann::json(std::string(1000, 'x'))).size(), 83U);
}

}  // namespace
}  // namespace tutti::train
