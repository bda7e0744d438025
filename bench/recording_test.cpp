#include "bench/recording.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "bench/link_report.h"

namespace bench {
namespace {

using nlohmann::ordered_json;
using testing::HasSubstr;

Recording some_recording() {
  Recording recording{.machine = "some machine", .ranks = {2, 3}, .cores_of_host = 7};
  recording.calibration = calibration_cases(recording.ranks);
  recording.comparison = comparison_cases(recording.ranks);
  double time = 1e-6;
  for (auto* cases : {&recording.calibration, &recording.comparison}) {
    for (auto& one : *cases) {
      one.rounds = {time *= 1.01, 3 * time, 2 * time};
      one.settle();
    }
  }
  return recording;
}

void expect_same(const std::vector<LinkCase>& some, const std::vector<LinkCase>& others) {
  ASSERT_EQ(some.size(), others.size());
  for (std::size_t i = 0; i < some.size(); ++i) {
    const auto& a = some[i].plan;
    const auto& b = others[i].plan;
    EXPECT_EQ(a.request.op, b.request.op);
    EXPECT_EQ(a.request.algorithm, b.request.algorithm);
    EXPECT_EQ(a.request.ranks, b.request.ranks);
    EXPECT_EQ(a.request.chunks, b.request.chunks);
    EXPECT_EQ(a.request.leaders, b.request.leaders);
    EXPECT_EQ(a.request.hosts, b.request.hosts);
    EXPECT_EQ(a.ranks_of_host, b.ranks_of_host);
    EXPECT_EQ(a.bytes, b.bytes);
    EXPECT_EQ(a.seconds, b.seconds);
    EXPECT_EQ(some[i].rounds, others[i].rounds);
  }
}

TEST(Recording, IsReadAsItWasWritten) {
  const auto wrote = some_recording();
  const auto network = guess_network(wrote.ranks, wrote.cores_of_host);
  for (const auto& text : {to_json(wrote), to_json(wrote, network)}) {
    const auto read = parse_recording(text);
    ASSERT_TRUE(read.ok()) << read.error().message;
    EXPECT_EQ(read.value().machine, "some machine");
    EXPECT_EQ(read.value().ranks.hosts, 2);
    EXPECT_EQ(read.value().ranks.of_host, 3);
    EXPECT_EQ(read.value().cores_of_host, 7);
    expect_same(read.value().calibration, wrote.calibration);
    expect_same(read.value().comparison, wrote.comparison);
  }
}

TEST(Recording, NeedsNothingToCompareWith) {
  auto recording = some_recording();
  recording.comparison.clear();
  const auto read = parse_recording(to_json(recording));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_TRUE(read.value().comparison.empty());
}

TEST(Recording, SaysWhatIsWrong) {
  const auto good = ordered_json::parse(to_json(some_recording()));
  const auto said = [&](const char* pointer, const ordered_json& value) {
    auto bad = good;
    bad[ordered_json::json_pointer(pointer)] = value;
    const auto read = parse_recording(bad.dump());
    return read.ok() ? "nothing" : read.error().message;
  };
  EXPECT_THAT(said("/calibration/plans/5/round_seconds", ordered_json::array()), HasSubstr("round_seconds"));
  EXPECT_THAT(said("/calibration/plans/5/round_seconds", {1e-3, -1.0}), HasSubstr("round_seconds"));
  EXPECT_THAT(said("/calibration/plans/5/chunks", 0), HasSubstr("chunks: 0 is not from 1"));
  EXPECT_THAT(said("/calibration/plans/5/chunks", 4294967297), HasSubstr("chunks"));
  EXPECT_THAT(said("/calibration/plans/5/algorithm", "rink"), HasSubstr("rink"));
  EXPECT_THAT(said("/calibration/plans/5/algorithm", "bruck"), HasSubstr("bruck"));
  EXPECT_THAT(said("/calibration/plans/5/ranks_of_host", 4000), HasSubstr("too many"));
  EXPECT_THAT(said("/comparison/plans/5/bytes", std::uint64_t{1} << 63), HasSubstr("bytes"));
  EXPECT_THAT(said("/comparison/plans/5/bytes", "1Mi"), HasSubstr("must be number"));
  EXPECT_THAT(said("/calibration/plans", ordered_json::array()), HasSubstr("nothing was timed"));
  EXPECT_THAT(said("/hosts", 0), HasSubstr("hosts"));
  EXPECT_THAT(parse_recording("{").error().message, HasSubstr("parse error"));
  EXPECT_THAT(parse_recording("[]").error().message, HasSubstr("array"));
}

TEST(Recording, FilesThatCannotBeReadAreNamed) {
  EXPECT_THAT(read_recording("/no/such/file").error().message, HasSubstr("cannot read /no/such/file"));
  const std::string self = std::filesystem::canonical("/proc/self/exe");
  EXPECT_THAT(read_recording(self).error().message, HasSubstr(self + " is no recording of tutti bench --links"));
}

}  // namespace
}  // namespace bench
