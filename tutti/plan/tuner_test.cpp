#include "tutti/plan/tuner.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::plan {
namespace {

using testing::Contains;
using testing::Not;

constexpr std::size_t kMi = 1 << 20;
const GroupShape kThree{.engine = "shm", .hosts = {3}};
const GroupShape kTwoHosts{.engine = "mpi (Open MPI v5.0.11)", .hosts = {2, 3}};

std::vector<std::string> names(Op op, const GroupShape& shape, std::size_t bytes) {
  std::vector<std::string> names;
  for (const auto& choice : candidates(op, shape, bytes)) {
    names.push_back(text_of(choice));
  }
  return names;
}

TriedSize tried(std::size_t bytes, const std::vector<std::pair<std::string, double>>& times) {
  TriedSize size{.bytes = bytes, .tried = {}};
  for (const auto& [name, seconds] : times) {
    size.tried.push_back(
        {.choice = name == "own" ? std::nullopt : std::optional(Choice::parse(name).value()), .seconds = seconds});
  }
  return size;
}

TEST(GroupShape, IsWrittenAsItIsRead) {
  for (const auto* text : {"shm 4", "mpi (Open MPI v5.0.11) 2+2+13", "mpi (x) 2+2|1", "mpi (x) 1|2|3+4"}) {
    EXPECT_EQ(GroupShape::parse(text).text(), text);
  }
  EXPECT_EQ(GroupShape::parse("mpi (Open MPI v5.0.11) 2+2+13").ranks(), 17);
  EXPECT_EQ(GroupShape::parse("").ranks(), 0);
}

TEST(Tuner, TriesTheOwnWayFirst) {
  for (const auto& shape : {kThree, kTwoHosts}) {
    for (const auto op : {Op::all_reduce, Op::all_gather, Op::broadcast, Op::gather}) {
      EXPECT_EQ(names(op, shape, 1003).front(), "own");
    }
  }
}

TEST(Tuner, TriesNothingTwiceAndNothingThatCannotBe) {
  for (const auto& shape : {kThree, kTwoHosts, GroupShape{.engine = "mpi", .hosts = {1, 1, 1}}}) {
    for (const auto op : {Op::all_reduce, Op::reduce_scatter, Op::all_gather, Op::broadcast, Op::reduce, Op::all_to_all,
                          Op::gather, Op::scatter}) {
      for (const std::size_t bytes : {std::size_t{8}, std::size_t{70'000}, 25 * kMi}) {
        auto all = names(op, shape, bytes);
        for (const auto& name : all) {
          EXPECT_TRUE(name == "own" || Choice::parse(name).value().text() == name) << name;
        }
        std::sort(all.begin(), all.end());
        EXPECT_EQ(std::adjacent_find(all.begin(), all.end()), all.end());
      }
    }
  }
}

TEST(Tuner, WhatIsTriedDependsOnHostsAndBytes) {
  EXPECT_THAT(names(Op::all_reduce, kThree, 8), Contains("at_once"));
  EXPECT_THAT(names(Op::all_reduce, kThree, 8), Not(Contains("ring/4")));
  EXPECT_THAT(names(Op::all_reduce, kThree, kMi), Contains("ring/4"));
  EXPECT_THAT(names(Op::all_reduce, kThree, kMi), Not(Contains("at_once")));
  EXPECT_THAT(names(Op::all_reduce, kThree, kMi), Not(Contains("library")));
  EXPECT_THAT(names(Op::all_reduce, kTwoHosts, 25 * kMi), Contains("library"));
  EXPECT_THAT(names(Op::all_reduce, kTwoHosts, 25 * kMi), Contains("in_slices.recursive_doubling@2/512Ki"));
  EXPECT_THAT(names(Op::all_reduce, kTwoHosts, 25 * kMi), Contains("hybrid@2/16"));
  EXPECT_THAT(names(Op::all_reduce, kTwoHosts, 25 * kMi), Not(Contains("hybrid.direct.ring@2/16")));
  for (const auto op : {Op::all_gather, Op::broadcast, Op::all_to_all}) {
    EXPECT_THAT(names(op, kTwoHosts, 25 * kMi), Contains("library"));
    EXPECT_THAT(names(op, kThree, 25 * kMi), Not(Contains("library")));
  }
  EXPECT_THAT(names(Op::reduce_scatter, kTwoHosts, 25 * kMi), Not(Contains("library")));
  const GroupShape many{.engine = "mpi", .hosts = {2, 2, 3}};
  EXPECT_THAT(names(Op::all_reduce, many, 25 * kMi), Contains("hybrid.direct.ring@2/16"));
  EXPECT_THAT(names(Op::all_reduce, many, 25 * kMi), Contains("hybrid.direct.tree@1/4"));
  EXPECT_THAT(names(Op::all_reduce, many, 8), Not(Contains("hybrid.direct.ring@2")));
  EXPECT_LT(names(Op::all_reduce, many, 25 * kMi).size(), 60) << "each is timed";
}

TEST(Tuner, PrefersTheOwnWayThenWhatWasBeforeWhereItIsAsQuick) {
  const auto size = tried(1003, {{"own", 1.01}, {"ring", 1.0}, {"tree", 1.015}});
  EXPECT_EQ(pick(size).choice, std::nullopt);
  const auto slower = tried(1003, {{"own", 1.1}, {"ring", 1.0}, {"tree", 1.015}});
  EXPECT_EQ(pick(slower).choice->text(), "ring");
  EXPECT_EQ(pick(slower, Choice::parse("tree").value()).choice->text(), "tree");
  EXPECT_EQ(
      pick(tried(1003, {{"own", 1.1}, {"ring", 1.0}, {"tree", 1.05}}), Choice::parse("tree").value()).choice->text(),
      "ring");
}

TEST(Tuner, WhatDroppedOutInACalmMomentIsNotChosen) {
  auto size = tried(1003, {{"own", 1.0}, {"ring", 1.3}, {"tree", 1.1}, {"direct", 1.31}});
  size.tried[0].to_the_end = false;
  size.tried[2].to_the_end = false;
  EXPECT_EQ(pick(size).choice->text(), "ring");
  EXPECT_EQ(pick(size, Choice::parse("tree").value()).choice->text(), "ring");
  EXPECT_EQ(pick(size, Choice::parse("direct").value()).choice->text(), "direct");
}

TEST(Tuner, ChangesInTheMiddleBetweenSizes) {
  const auto choices =
      choose({tried(1024, {{"own", 2}, {"at_once", 1}}), tried(65536, {{"own", 1}, {"at_once", 2}}),
              tried(4 * kMi, {{"own", 1}, {"ring", 3}}), tried(64 * kMi, {{"own", 2}, {"ring/4", 1}})});
  EXPECT_EQ(choices.text(), "at_once,8Ki:own,16Mi:ring/4");
}

TEST(Tuner, WhereTheOwnWayIsQuickestNothingIsChosen) {
  EXPECT_TRUE(choose({tried(8, {{"own", 1}, {"ring", 2}}), tried(1024, {{"own", 1}, {"ring", 1}})}).empty());
}

}  // namespace
}  // namespace tutti::plan
