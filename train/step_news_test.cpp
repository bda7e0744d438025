#include "train/step_news.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::train {
namespace {

using testing::ElementsAre;

TEST(StepNews, ComeBackAsTheyWere) {
  const StepNews news{.times = {.begin_ms = 1,
                                .arrived_ms = 2,
                                .step = 3,
                                .forward = 4,
                                .backward = 5,
                                .exposed = 6,
                                .optimizer = 7,
                                .communication = 8,
                                .hidden = 9},
                      .wants_to_stop = true,
                      .losses = {2.5, 3.5}};
  const auto row = news.row(3);
  EXPECT_EQ(row.size(), StepNews::row_length(3));
  const auto back = StepNews::from_row(row);
  EXPECT_EQ(back.times.begin_ms, 1);
  EXPECT_EQ(back.times.arrived_ms, 2);
  EXPECT_EQ(back.times.step, 3);
  EXPECT_EQ(back.times.hidden, 9);
  EXPECT_TRUE(back.wants_to_stop);
  EXPECT_THAT(back.losses, ElementsAre(2.5, 3.5));
}

TEST(StepNews, MeanIsAddedUpInTheOrderOfThePasses) {
  // 1e16 + 1 - 1e16 depends on the order: passes 0 to 4 are dealt out to 1, 2 or 3 ranks.
  const std::vector<double> passes{1e16, 1, -1e16, 3, 5};
  std::vector<double> means;
  for (const std::size_t ranks : {1U, 2U, 3U}) {
    std::vector<StepNews> news(ranks);
    for (std::size_t pass = 0; pass < passes.size(); ++pass) {
      news[pass % ranks].losses.push_back(passes[pass]);
    }
    means.push_back(mean_loss(news));
  }
  EXPECT_THAT(means, ElementsAre(means[0], means[0], means[0]));
  EXPECT_EQ(means[0], (1e16 + 1 - 1e16 + 3 + 5) / 5);
}

TEST(StepNews, TimelinesTravelAsNumbers) {
  const observe::RankTimeline timeline{
      .rank = 2,
      .phases = {{"data", 0, 1}, {"forward", 1, 5}, {"backward", 5, 9}, {"wait", 9, 9.5}, {"optimizer", 9.5, 11}},
      .buckets = {{.bytes = 4096, .ready_ms = 6, .begin_ms = 6.5, .end_ms = 8}}};
  const auto row = timeline_row(timeline, 1, 1);
  EXPECT_EQ(timeline_row({.rank = 0, .phases = {}, .buckets = timeline.buckets}, 1, 1).size(), row.size());
  const auto back = timeline_from_row(2, row);
  ASSERT_EQ(back.phases.size(), 5U);
  EXPECT_EQ(back.phases[3].name, "wait");
  EXPECT_EQ(back.phases[3].end_ms, 9.5);
  ASSERT_EQ(back.buckets.size(), 1U);
  EXPECT_EQ(back.buckets[0].bytes, 4096);
  EXPECT_EQ(back.buckets[0].end_ms, 8);
}

}  // namespace
}  // namespace tutti::train
