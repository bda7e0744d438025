#include "train/columns.h"

#include <gtest/gtest.h>

namespace tutti::train {
namespace {

TEST(Columns, AreNotBytes) {
  EXPECT_EQ(columns_of(""), 0U);
  EXPECT_EQ(columns_of("step 7"), 6U);
  EXPECT_EQ(columns_of("äöü"), 3U);
  EXPECT_EQ(columns_of("█▌░"), 3U);
  EXPECT_EQ(columns_of("日本"), 4U);
  EXPECT_EQ(columns_of("e\xcc\x81"), 1U) << "a mark on a letter";
}

TEST(Columns, WhatIsNoTextHasOneEach) {
  EXPECT_EQ(columns_of("\xff\xfe"), 2U);
  EXPECT_EQ(columns_of("a\xc3"), 2U) << "half a letter";
  EXPECT_EQ(columns_of(std::string_view("a\0b", 3)), 3U);
}

TEST(Columns, TextIsCutBetweenLetters) {
  EXPECT_EQ(cut("äöüß", 4), "äöüß");
  EXPECT_EQ(cut("äöüß", 3), "äö…");
  EXPECT_EQ(cut("日本語", 4), "日…") << "no half of a wide letter";
  EXPECT_EQ(cut("abc", 1), "…");
  EXPECT_EQ(cut("abc", 0), "");
}

}  // namespace
}  // namespace tutti::train
