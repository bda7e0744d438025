#include "cli/job_output.h"

#include <gmock/gmock.h>

namespace tutti::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(LinePrefix, IsAlignedOverTheWorld) {
  EXPECT_EQ(line_prefix(Rank{3}, 8, false, false), "[3] ");
  EXPECT_EQ(line_prefix(Rank{3}, 11, false, false), "[ 3] ");
  EXPECT_EQ(line_prefix(Rank{10}, 11, true, false), "[10]+");
  EXPECT_EQ(line_prefix(Rank{0}, 1, false, false), "[0] ");
}

TEST(LinePrefix, HasAColourPerRank) {
  EXPECT_EQ(line_prefix(Rank{0}, 2, false, true), "\x1b[36m[0] \x1b[0m");
  EXPECT_NE(line_prefix(Rank{1}, 2, false, true).substr(0, 5), line_prefix(Rank{0}, 2, false, true).substr(0, 5));
}

TEST(Tail, KeepsTheLastFive) {
  Tail tail;
  EXPECT_THAT(tail.lines(), IsEmpty());
  for (int i = 1; i <= 7; ++i) {
    tail.add("line " + std::to_string(i));
  }
  EXPECT_THAT(tail.lines(), ElementsAre("line 3", "line 4", "line 5", "line 6", "line 7"));
  tail.add(std::string(9999, 'x'));
  EXPECT_EQ(tail.lines().back().size(), Tail::kLongest);
}

TEST(JobOutput, LastLinesAreErrorsIfThereAreAny) {
  const auto writer = Writer::make();
  JobOutput output(3, {.quiet = true}, *writer.value());
  output.bytes(Rank{1}, Stream::out, "printed\n");
  EXPECT_THAT(output.last_lines(Rank{1}), ElementsAre("printed"));
  output.bytes(Rank{1}, Stream::err, "went wr");
  output.bytes(Rank{1}, Stream::err, "ong");
  output.end(Rank{1}, Stream::err);
  EXPECT_THAT(output.last_lines(Rank{1}), ElementsAre("went wrong"));
  EXPECT_THAT(output.last_lines(Rank{2}), IsEmpty());
}

TEST(JobOutput, LogDirectoryThatCannotBeIsAnError) {
  const auto writer = Writer::make();
  JobOutput output(1, {.log_directory = "/proc/nowhere/logs"}, *writer.value());
  const Status opened = output.open_logs();
  ASSERT_FALSE(opened.ok());
  EXPECT_THAT(opened.error().message, HasSubstr("/proc/nowhere/logs"));
}

}  // namespace
}  // namespace tutti::cli
