#include "train/live_line.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "train/columns.h"

namespace tutti::train {
namespace {

using testing::HasSubstr;
using testing::Not;

const Progress kSome{.step = 75,
                     .steps = 200,
                     .loss = 2.34567,
                     .tokens_per_s = 12345,
                     .gradient_norm = 1.234,
                     .learning_rate = 5e-4,
                     .exposed = 0.034,
                     .eta_s = 83};

TEST(LiveLine, SaysAllWhereThereIsRoom) {
  EXPECT_EQ(live_line(kSome, 100),
            "▕██████████▌                 ▏ 75/200  loss 2.3457  12.3k tok/s  norm 1.23  sync 3.4%  ETA 1m23s");
  EXPECT_EQ(live_line(kSome, 100, false),
            "[##########                  ] 75/200  loss 2.3457  12.3k tok/s  norm 1.23  sync 3.4%  ETA 1m23s");
}

TEST(LiveLine, LeavesOutWhatMattersLeast) {
  EXPECT_THAT(live_line(kSome, 60), Not(HasSubstr("norm")));
  EXPECT_EQ(live_line(kSome, 40), "▕██▋    ▏ 75/200  loss 2.3457  ETA 1m23s");
  EXPECT_EQ(live_line(kSome, 35), "75/200  loss 2.3457  ETA 1m23s");
  EXPECT_EQ(live_line(kSome, 20), "75/200  loss 2.3457");
  EXPECT_EQ(live_line(kSome, 13), "▕█▌  ▏ 75/200");
  EXPECT_EQ(live_line(kSome, 6), "75/200");
  EXPECT_EQ(live_line(kSome, 5), "75/2…");
  EXPECT_EQ(live_line(kSome, 5, false), "75/20");
  EXPECT_EQ(live_line(kSome, 0), "");
}

TEST(LiveLine, FitsAnyWidthAtAnyTime) {
  for (const bool unicode : {true, false}) {
    for (std::size_t columns = 0; columns < 150; ++columns) {
      for (const std::int64_t step : {0, 1, 99, 100, 101, 1'000'000'000}) {
        auto progress = kSome;
        progress.step = step;
        progress.steps = 100;
        progress.loss = step == 99 ? 1e30 : 2;
        const auto line = live_line(progress, columns, unicode);
        EXPECT_LE(columns_of(line), columns) << line;
        EXPECT_EQ(line.find('\n'), std::string::npos);
      }
    }
  }
}

TEST(LiveLine, TheBarIsFullAtTheEnd) {
  auto progress = kSome;
  progress.step = 200;
  EXPECT_THAT(live_line(progress, 200), HasSubstr("▕" + std::string("████████████████████████████") + "▏"));
  progress.step = 0;
  EXPECT_THAT(live_line(progress, 200), HasSubstr("▕                            ▏"));
}

TEST(LiveLine, WhatIsNotANumberIsSaid) {
  const Progress broken{.step = 5, .steps = 9, .loss = std::nan(""), .gradient_norm = std::nan("")};
  EXPECT_EQ(plain_line(broken), "step 5/9  loss nan  norm nan");
  EXPECT_EQ(plain_line({.step = 5, .steps = 9, .loss = INFINITY, .gradient_norm = 1e20}),
            "step 5/9  loss inf  norm 1.00e+20");
}

TEST(LiveLine, PlainLinesHaveNoBar) {
  EXPECT_EQ(plain_line(kSome), "step 75/200  loss 2.3457  12.3k tok/s  norm 1.23  sync 3.4%  ETA 1m23s");
  auto evaluated = kSome;
  evaluated.evaluation_loss = 2.5;
  EXPECT_THAT(plain_line(evaluated), HasSubstr("  eval 2.5000  "));
}

TEST(LiveLine, JsonLinesHaveNullForWhatIsNotKnown) {
  const auto json = nlohmann::json::parse(json_line(kSome));
  EXPECT_EQ(json["step"], 75);
  EXPECT_EQ(json["loss"], 2.34567);
  EXPECT_EQ(json["exposed"], 0.034);
  EXPECT_TRUE(json["evaluation_loss"].is_null());
  EXPECT_TRUE(nlohmann::json::parse(json_line({.loss = INFINITY}))["loss"].is_null());
  EXPECT_EQ(json_line(kSome).find('\n'), std::string::npos);
}

TEST(LiveLine, DurationsAndCountsAreShort) {
  EXPECT_EQ(duration_text(0.4), "0s");
  EXPECT_EQ(duration_text(59.6), "1m00s");
  EXPECT_EQ(duration_text(3599.6), "1h00m");
  EXPECT_EQ(duration_text(7509), "2h05m");
  EXPECT_EQ(duration_text(86400 * 3 + 4 * 3600 + 5), "3d04h");
  EXPECT_EQ(duration_text(kUnknown), "?");
  EXPECT_EQ(duration_text(-1), "?");
  EXPECT_EQ(count_text(0), "0");
  EXPECT_EQ(count_text(987), "987");
  EXPECT_EQ(count_text(999.6), "1.00k");
  EXPECT_EQ(count_text(12345), "12.3k");
  EXPECT_EQ(count_text(999'960), "1.00M");
  EXPECT_EQ(count_text(4.56e6), "4.56M");
  EXPECT_EQ(count_text(kUnknown), "?");
}

}  // namespace
}  // namespace tutti::train
