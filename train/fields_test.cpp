#include "train/fields.h"

#include <set>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace tutti::train {
namespace {

TEST(Fields, HaveKeysOfTheirOwn) {
  const auto keys = field_keys();
  EXPECT_EQ(std::set<std::string>(keys.begin(), keys.end()).size(), keys.size());
  EXPECT_EQ(find_field("Steps"), nullptr);
  EXPECT_EQ(flag_of(*find_field("learning_rate")), "--learning-rate");
}

/// Each key sets a member of its own: a copied line of the table would not.
TEST(Fields, EachSetsItsOwnMember) {
  for (const auto& field : fields()) {
    Config config;
    const auto before = field.get(config);
    for (const nlohmann::json& other : {nlohmann::json(before != true), nlohmann::json(17), nlohmann::json(0.25),
                                        nlohmann::json("other"), nlohmann::json({"a", "b"})}) {
      if (field.put(config, other)) {
        break;
      }
    }
    if (!field.words.empty()) {
      EXPECT_TRUE(field.put(config, field.words.back()));
    }
    if (field.get(config) == before && !field.words.empty()) {
      EXPECT_TRUE(field.put(config, field.words.front()));
    }
    EXPECT_NE(field.get(config), before) << field.key;
    for (const auto& untouched : fields()) {
      EXPECT_TRUE(untouched.key == field.key || untouched.get(config) == untouched.get(Config{}))
          << field.key << " sets " << untouched.key;
    }
  }
}

TEST(Fields, TheirDefaultsAreAllowed) {
  for (const auto& field : fields()) {
    Config config;
    EXPECT_TRUE(field.put(config, field.get(config))) << field.key;
    EXPECT_EQ(config, Config{}) << field.key;
    EXPECT_EQ(field.put(config, nullptr), field.optional) << field.key;
  }
}

TEST(Fields, EndsOfRangesAreInThem) {
  Config config;
  const auto takes = [&](const char* key, const nlohmann::json& value) { return find_field(key)->put(config, value); };
  EXPECT_TRUE(takes("layers", 1));
  EXPECT_FALSE(takes("layers", 0));
  EXPECT_TRUE(takes("layers", 1000));
  EXPECT_FALSE(takes("layers", 1001));
  EXPECT_FALSE(takes("layers", 2.0));
  EXPECT_TRUE(takes("seed", std::int64_t{9223372036854775807}));
  EXPECT_FALSE(takes("seed", std::uint64_t{9223372036854775808U}));
  EXPECT_FALSE(takes("seed", -1));
  EXPECT_TRUE(takes("beta1", 0));
  EXPECT_FALSE(takes("beta1", 1));
  EXPECT_FALSE(takes("learning_rate", 0));
  EXPECT_FALSE(takes("learning_rate", std::numeric_limits<double>::infinity()));
  EXPECT_TRUE(takes("evaluation_share", 0.5));
  EXPECT_FALSE(takes("name", "../up"));
  EXPECT_FALSE(takes("name", ".."));
  EXPECT_FALSE(takes("out", ""));
  EXPECT_FALSE(takes("data", {"a", 1}));
}

}  // namespace
}  // namespace tutti::train
