#include "tutti/plan/choice.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::plan {
namespace {

using testing::HasSubstr;

TEST(Choice, IsWrittenAsItIsRead) {
  for (const auto* text : {"ring", "ring/4", "double_tree/16", "hybrid", "hybrid@2/4", "at_once", "library",
                           "in_slices", "in_slices/512Ki", "in_slices.ring@2/96Ki", "in_slices@3"}) {
    EXPECT_EQ(Choice::parse(text).value().text(), text);
  }
  EXPECT_EQ(Choice::parse("ring/1").value(), Choice::parse("ring").value());
}

TEST(Choice, WhatMakesNoSenseIsRefused) {
  for (const auto* bad : {"ring/", "ring/0", "ring/x", "ring/4097", "ring/4/4", "ring/-1"}) {
    EXPECT_THAT(Choice::parse(bad).error().message, HasSubstr("a number of chunks, 1 to 4096")) << bad;
  }
  EXPECT_THAT(Choice::parse("rong").error().message, HasSubstr("no algorithm 'rong'"));
  EXPECT_THAT(Choice::parse("hybrid@0").error().message, HasSubstr("a number of leaders, 1 to 255"));
  EXPECT_THAT(Choice::parse("ring@2").error().message, HasSubstr("only hybrid plans do"));
  EXPECT_THAT(Choice::parse("in_slices/1000").error().message, HasSubstr("in whole Ki"));
  EXPECT_THAT(Choice::parse("in_slices/64Mi").error().message, HasSubstr("up to 4095Ki"));
  EXPECT_THAT(Choice::parse("in_slices.hybrid").error().message, HasSubstr("other than hybrid"));
  EXPECT_THAT(Choice::parse("in_slices.bruck").error().message, HasSubstr("an algorithm for all_reduce"));
  EXPECT_THAT(Choice::parse("in_slicesx").error().message, HasSubstr("is not in_slices"));
  EXPECT_FALSE(Choice::parse(""));
}

TEST(Choice, MarksTellAllOfThemApart) {
  std::set<std::uint32_t> marks{0};
  std::size_t count = 1;
  for (const auto* text : {"at_once", "library", "in_slices", "in_slices/1Ki", "in_slices/2Ki", "in_slices@1",
                           "in_slices@1/1Ki", "in_slices.ring", "in_slices.tree", "ring", "ring/2", "ring/4096", "tree",
                           "hybrid", "hybrid@1", "hybrid@255/4096", "bruck", "in_slices.direct@255/4095Ki"}) {
    marks.insert(Choice::parse(text).value().mark());
    EXPECT_EQ(marks.size(), ++count) << text;
  }
}

TEST(Choices, AreFoundBySize) {
  const auto choices = Choices::parse("at_once,64Ki:own,4Mi:ring/4").value();
  EXPECT_EQ(choices.find(0)->text(), "at_once");
  EXPECT_EQ(choices.find(65535)->text(), "at_once");
  EXPECT_EQ(choices.find(65536), nullptr);
  EXPECT_EQ(choices.find((std::size_t{4} << 20) - 1), nullptr);
  EXPECT_EQ(choices.find(std::size_t{4} << 20)->text(), "ring/4");
  EXPECT_EQ(Choices().find(7), nullptr);
}

TEST(Choices, AreWrittenAsTheyAreRead) {
  for (const auto* text : {"own", "ring/4", "at_once,64Ki:own,4Mi:ring/4", "own,1003:tree"}) {
    EXPECT_EQ(Choices::parse(text).value().text(), text);
  }
  EXPECT_EQ(Choices::parse("own,1Ki:own,2Ki:ring,3Ki:ring").value().text(), "own,2Ki:ring");
}

TEST(Choices, WhatMakesNoSenseIsRefused) {
  EXPECT_THAT(Choices::parse("64Ki:ring").error().message, HasSubstr("the first choice is for sizes from 0"));
  EXPECT_THAT(Choices::parse("ring,tree").error().message, HasSubstr("comes a size"));
  EXPECT_THAT(Choices::parse("ring,64K:tree").error().message, HasSubstr("is no size"));
  EXPECT_THAT(Choices::parse("ring,64Ki:tree,64Ki:ring").error().message, HasSubstr("sizes go up"));
  EXPECT_THAT(Choices::parse("ring,64Ki:rong").error().message, HasSubstr("no algorithm 'rong'"));
  EXPECT_FALSE(Choices::parse(""));
  EXPECT_FALSE(Choices::parse("ring,,4Ki:tree"));
}

}  // namespace
}  // namespace tutti::plan
