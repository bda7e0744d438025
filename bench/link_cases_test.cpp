#include "bench/link_cases.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "bench/link_report.h"

namespace bench {
namespace {

using tutti::plan::Algorithm;

TEST(LinkCases, WhatIsComparedWasNotCalibratedWith) {
  for (const auto& ranks : {Ranks{1, 2}, Ranks{1, 3}, Ranks{1, 16}, Ranks{2, 2}, Ranks{2, 4}, Ranks{3, 7}}) {
    std::set<std::size_t> sizes;
    std::set<int> counts;
    for (const auto& one : calibration_cases(ranks)) {
      sizes.insert(one.plan.bytes);
      counts.insert(one.plan.ranks_of_host);
    }
    bool other_counts = false;
    for (const auto& one : comparison_cases(ranks)) {
      EXPECT_FALSE(sizes.contains(one.plan.bytes)) << one.plan.bytes;
      EXPECT_LE(one.plan.ranks_of_host, *counts.rbegin());
      other_counts = other_counts || !counts.contains(one.plan.ranks_of_host);
    }
    EXPECT_EQ(other_counts, ranks.of_host > 3) << ranks.of_host;
  }
}

TEST(LinkCases, AllHavePlansThatCanBeSimulated) {
  for (const auto& ranks : {Ranks{1, 6}, Ranks{2, 3}}) {
    const auto network = guess_network(ranks, 4);
    for (const auto& cases : {calibration_cases(ranks), comparison_cases(ranks)}) {
      bool hybrid = false;
      for (const auto& one : cases) {
        const auto seconds = tutti::plan::simulated_seconds(one.plan, network);
        ASSERT_TRUE(seconds.ok()) << seconds.error().message;
        EXPECT_GT(seconds.value(), 0);
        EXPECT_EQ(one.members(ranks).size(), static_cast<std::size_t>(one.plan.request.ranks));
        hybrid = hybrid || one.plan.request.algorithm == Algorithm::hybrid;
      }
      EXPECT_EQ(hybrid, ranks.hosts > 1);
    }
  }
}

/// What many ranks record can be read again.
TEST(LinkCases, OfManyRanksAreShort) {
  for (const auto& cases : {calibration_cases({12, 64}), comparison_cases({12, 64}), calibration_cases({1, 4096})}) {
    EXPECT_GT(cases.size(), 10);
    EXPECT_TRUE(std::all_of(cases.begin(), cases.end(), is_short));
  }
}

TEST(LinkCases, SomeRanksOfEachHost) {
  LinkCase one;
  one.hosts = 2;
  one.plan.ranks_of_host = 2;
  EXPECT_EQ(one.members({2, 3}), (std::vector{tutti::Rank{0}, tutti::Rank{1}, tutti::Rank{3}, tutti::Rank{4}}));
}

TEST(LinkCases, TimesAreTheSecondBestOfRoundsAndHalvesTellTheirScatter) {
  LinkCase one;
  EXPECT_EQ(one.scatter(), 0);
  one.rounds = {3, 1, 2, 9, 2};
  one.settle();
  EXPECT_EQ(one.plan.seconds, 2);
  EXPECT_NEAR(one.scatter(), 1, 1e-12);  // the best of 3, 1 and the second best of 2, 9, 2
  one.rounds = {4, 4, 5, 5};
  one.settle();
  EXPECT_EQ(one.plan.seconds, 4);
  EXPECT_NEAR(one.scatter(), 0.25, 1e-12);
  one.rounds = {8, 9};
  one.settle();
  EXPECT_EQ(one.plan.seconds, 8);
  one.rounds = {7};
  one.settle();
  EXPECT_EQ(one.plan.seconds, 7);
  EXPECT_EQ(one.scatter(), 0);
}

TEST(LinkReport, ErrorsAndTable) {
  std::vector<LinkLine> lines(3);
  for (std::size_t i = 0; i < 3; ++i) {
    lines[i].timed.plan.request.ranks = 4;
    lines[i].timed.plan.bytes = 2048;
    lines[i].timed.rounds = {1e-5, 1.2e-5, 1e-5, 1.3e-5};
    lines[i].timed.settle();
    lines[i].simulated = 1e-5 * (1.1 - 0.15 * static_cast<double>(i));  // 10 % too long, 5 and 20 % too short
  }
  EXPECT_NEAR(errors_of(lines).median, 0.1, 1e-12);
  EXPECT_NEAR(errors_of(lines).worst, 0.2, 1e-12);
  const auto text = table("Title", lines);
  EXPECT_NE(text.find("all_reduce ring/1"), std::string::npos) << text;
  EXPECT_NE(text.find("-20%"), std::string::npos) << text;
  EXPECT_NE(text.find("3 plans: median error 10.0 %, worst 20.0 %; halves of the rounds differ by 0.0 %"),
            std::string::npos)
      << text;
}

}  // namespace
}  // namespace bench
