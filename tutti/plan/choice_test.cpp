#include "tutti/plan/choice.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::plan {
namespace {

using testing::HasSubstr;

TEST(Choice, IsWrittenAsItIsRead) {
  for (const auto* text : {"ring", "ring/4", "double_tree/16", "hybrid", "hybrid@2/4", "at_once", "library",
                           "in_slices", "in_slices/512Ki", "in_slices.ring@2/96Ki", "in_slices@3", "hybrid.tree",
                           "hybrid.ring.tree@2/4", "hybrid.direct.ring", "hybrid.tree.one_shot/3"}) {
    EXPECT_EQ(Choice::parse(text).value().text(), text);
  }
  EXPECT_EQ(Choice::parse("ring/1").value(), Choice::parse("ring").value());
  EXPECT_EQ(Choice::parse("hybrid.direct").value(), Choice::parse("hybrid").value());
  EXPECT_EQ(Choice::parse("hybrid.ring.halving_doubling@2").value().text(), "hybrid.ring@2");
}

TEST(Choice, OfAHybridSaysWhatItIsMadeOf) {
  const std::vector<std::vector<Rank>> hosts{{Rank{0}, Rank{1}}, {Rank{2}, Rank{3}, Rank{4}}};
  const auto request = request_of(Choice::parse("hybrid.ring.tree@3/4").value(), Op::all_reduce, hosts);
  EXPECT_EQ(request.ranks, 5);
  EXPECT_EQ(request.inner, Algorithm::ring);
  EXPECT_EQ(request.outer, Algorithm::tree);
  EXPECT_EQ(request.leaders, 2) << "the smaller host has no more";
  EXPECT_EQ(request.chunks, 4);
  const auto usual = request_of(Choice::parse("hybrid").value(), Op::all_reduce, hosts);
  EXPECT_EQ(usual.inner, Algorithm::direct);
  EXPECT_EQ(usual.outer, Algorithm::halving_doubling);
  EXPECT_EQ(usual.leaders, 1);
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
  EXPECT_THAT(Choice::parse("in_slices.hybrid").error().message, HasSubstr("one_shot, direct"));
  EXPECT_THAT(
      Choice::parse("in_slices.bruck").error().message,
      HasSubstr("between hosts there are ring, tree, double_tree, recursive_doubling, halving_doubling, one_shot, "
                "direct, not bruck"));
  EXPECT_THAT(Choice::parse("hybrid.bruck").error().message,
              HasSubstr("inside of a host there are direct, ring, tree, not bruck"));
  EXPECT_THAT(Choice::parse("hybrid.ring.hybrid/2").error().message, HasSubstr("between hosts there are ring"));
  EXPECT_THAT(Choice::parse("hybrid.ring.tree.ring").error().message, HasSubstr("one_shot, direct, not tree.ring"));
  EXPECT_THAT(Choice::parse("hybrid.").error().message,
              HasSubstr("inside of a host there are direct, ring, tree, not "));
  EXPECT_THAT(Choice::parse("ring.tree").error().message, HasSubstr("only hybrid plans do"));
  EXPECT_THAT(Choice::parse("in_slicesx").error().message, HasSubstr("is not in_slices"));
  EXPECT_FALSE(Choice::parse(""));
}

TEST(Choice, MarksTellAllOfThemApart) {
  std::set<std::uint32_t> marks{0};
  std::size_t count = 1;
  const auto add = [&](const Choice& choice) {
    marks.insert(choice.mark());
    EXPECT_EQ(marks.size(), ++count) << choice.text();
  };
  for (const auto* text : {"at_once", "library"}) {
    add(Choice::parse(text).value());
  }
  for (const unsigned leaders : {0U, 1U, 255U}) {
    for (const std::size_t slice : {std::size_t{0}, Choice::kSliceUnit, Choice::kLongestSlice}) {
      add({.kind = Choice::Kind::in_slices, .leaders = leaders, .slice = slice});
      for (const auto between : algorithms_between_hosts()) {
        add({.kind = Choice::Kind::in_slices, .leaders = leaders, .between = between, .slice = slice});
      }
    }
    for (const unsigned chunks : {1U, 2U, Choice::kMostChunks}) {
      for (const auto inside : algorithms_inside_hosts()) {
        for (const auto between : algorithms_between_hosts()) {
          add({.algorithm = Algorithm::hybrid,
               .chunks = chunks,
               .leaders = leaders,
               .inside = inside,
               .between = between});
        }
      }
    }
  }
  for (const auto algorithm : {Algorithm::ring, Algorithm::tree, Algorithm::double_tree, Algorithm::recursive_doubling,
                               Algorithm::halving_doubling, Algorithm::one_shot, Algorithm::direct, Algorithm::binomial,
                               Algorithm::scatter_gather, Algorithm::bruck}) {
    for (const unsigned chunks : {1U, 2U, Choice::kMostChunks}) {
      add({.algorithm = algorithm, .chunks = chunks});
    }
  }
  EXPECT_EQ(Choice::parse("hybrid").value().mark(), Choice::parse("hybrid.direct.halving_doubling").value().mark());
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
