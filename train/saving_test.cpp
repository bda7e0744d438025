#include "train/saving.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "train/test_folder.h"

namespace tutti::train {
namespace {

namespace fs = std::filesystem;

class SavingTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const auto* name : kSavedFiles) {
      folder_.write(name, "old");
    }
    fs::create_directories(saving_folder(folder()));
  }

  const std::string& folder() const { return folder_.path(); }
  void write_new(std::size_t from, std::size_t to) const {
    for (auto i = from; i < to; ++i) {
      folder_.write(std::string("saving/") + kSavedFiles[i], "new");
    }
  }
  void expect_all(const std::string& wanted) const {
    for (const auto* name : kSavedFiles) {
      EXPECT_EQ(TestFolder::read(folder_ / name), wanted) << name;
    }
    EXPECT_FALSE(fs::exists(saving_folder(folder())));
  }

  TestFolder folder_;
};

TEST_F(SavingTest, WhatWasNotAllWrittenIsDropped) {
  write_new(0, kSavedFiles.size() - 1);
  ASSERT_TRUE(finish_saving(folder()));
  expect_all("old");
}

TEST_F(SavingTest, WhatWasAllWrittenTakesItsPlace) {
  write_new(0, kSavedFiles.size());
  ASSERT_TRUE(finish_saving(folder()));
  expect_all("new");
}

TEST_F(SavingTest, ACrashBetweenTwoFilesLeavesNoMixture) {
  for (std::size_t moved = 1; moved < kSavedFiles.size(); ++moved) {
    SetUp();
    write_new(moved, kSavedFiles.size());
    for (std::size_t i = 0; i < moved; ++i) {
      folder_.write(kSavedFiles[i], "new");
    }
    ASSERT_TRUE(finish_saving(folder()));
    expect_all("new");
  }
}

TEST_F(SavingTest, NothingToFinishIsFine) {
  fs::remove_all(saving_folder(folder()));
  ASSERT_TRUE(finish_saving(folder()));
  expect_all("old");
}

}  // namespace
}  // namespace tutti::train
