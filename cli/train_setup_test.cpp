#include "cli/train_setup.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "train/test_folder.h"

namespace tutti::cli {
namespace {

using train::Config;

TEST(TrainSetup, AsManyRanksAsCoresUpToALimit) {
  EXPECT_EQ(choose_ranks({}, 1), 1);
  EXPECT_EQ(choose_ranks({}, 2), 2);
  EXPECT_EQ(choose_ranks({}, 7), 7);
  EXPECT_EQ(choose_ranks({}, 300), 16);
  EXPECT_EQ(choose_ranks({.reproducible = true}, 300), 8) << "as many as it has passes";
}

TEST(TrainSetup, FewerRanksWhereTheBatchCannotBeDivided) {
  EXPECT_EQ(choose_ranks({.batch_tokens = 3 * 128}, 2), 1);
  EXPECT_EQ(choose_ranks({.batch_tokens = 3 * 128}, 4), 3);
  EXPECT_EQ(choose_ranks({.batch_tokens = 100}, 4), 4) << "no number fits; the error is that of the usual one";
}

TEST(TrainSetup, AMeshSaysHowManyRanks) {
  EXPECT_EQ(choose_ranks({.mesh = "dp=3"}, 2), 3);
  EXPECT_EQ(choose_ranks({.mesh = "dp=*"}, 2), 2);
}

TEST(TrainSetup, AFolderWithARunInItIsPassedBy) {
  const train::TestFolder folder;
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  EXPECT_EQ(new_folder("a"), "runs/a");
  folder.write("runs/a/something", "x");
  EXPECT_EQ(new_folder("a"), "runs/a") << "not a run";
  folder.write("runs/a/train.json", "{}");
  EXPECT_EQ(new_folder("a"), "runs/a-2");
  folder.write("runs/a-2/train.json", "{}");
  EXPECT_EQ(new_folder("a"), "runs/a-3");
  std::filesystem::current_path(before);
}

TEST(TrainSetup, TheDefaultTextIsThatOfTheSources) {
  const auto text = own_text();
  ASSERT_TRUE(text.ok()) << text.error().message;
  for (const auto& path : text.value()) {
    EXPECT_TRUE(std::filesystem::is_directory(path)) << path;
  }
}

}  // namespace
}  // namespace tutti::cli
