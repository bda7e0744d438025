#include "train/nearest.h"

#include <gtest/gtest.h>

namespace tutti::train {
namespace {

const std::vector<std::string> kWords{"steps", "learning_rate", "minimum_rate", "seed", "batch_tokens"};

TEST(Nearest, FindsWhatWasMeant) {
  EXPECT_EQ(nearest("step", kWords), "steps");
  EXPECT_EQ(nearest("lerning_rate", kWords), "learning_rate");
  EXPECT_EQ(nearest("learningrate", kWords), "learning_rate");
  EXPECT_EQ(nearest("sede", kWords), "seed");
  EXPECT_EQ(nearest("batch", kWords), "batch_tokens") << "a beginning is near";
}

TEST(Nearest, SaysNothingWhereNothingIsNear) {
  EXPECT_EQ(nearest("momentum", kWords), "");
  EXPECT_EQ(nearest("", kWords), "");
  EXPECT_EQ(nearest("x", {"lr"}), "") << "no letter in common";
  EXPECT_EQ(nearest(std::string(1 << 20, 's'), kWords), "");
  EXPECT_EQ(nearest("steps", {}), "");
}

TEST(Nearest, IsSaidInASentence) {
  EXPECT_EQ(did_you_mean("setps", kWords), "; did you mean 'steps'?");
  EXPECT_EQ(did_you_mean("momentum", kWords), "");
}

}  // namespace
}  // namespace tutti::train
