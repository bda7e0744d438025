#include "bench/recording.h"

#include <filesystem>

#include <fmt/format.h>
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
  EXPECT_THAT(said("/calibration/plans/5/chunks", 0),
              HasSubstr("calibration: plan 6: chunks: 0 is not a whole number from 1"));
  EXPECT_THAT(said("/calibration/plans/5/chunks", 4294967297), HasSubstr("chunks"));
  EXPECT_THAT(said("/calibration/plans/5/algorithm", "rink"), HasSubstr("rink"));
  EXPECT_THAT(said("/calibration/plans/5/algorithm", "bruck"), HasSubstr("bruck"));
  EXPECT_THAT(said("/calibration/plans/5/ranks_of_host", 4000), HasSubstr("ranks_of_host"));
  EXPECT_THAT(said("/comparison/plans/5/bytes", std::uint64_t{1} << 63), HasSubstr("bytes"));
  EXPECT_THAT(said("/comparison/plans/5/bytes", "1Mi"),
              HasSubstr("comparison: plan 6: bytes: string is not a whole number"));
  EXPECT_THAT(said("/comparison/plans/5/bytes", std::uint64_t{1} << 40),
              HasSubstr("too much to be simulated again and again"));
  EXPECT_THAT(said("/calibration/plans", ordered_json::array()), HasSubstr("nothing was timed"));
  EXPECT_THAT(said("/hosts", 0), HasSubstr("hosts"));
  EXPECT_THAT(parse_recording("{").error().message, HasSubstr("not JSON"));
  EXPECT_THAT(parse_recording("[]").error().message, HasSubstr("an object is wanted"));
  EXPECT_THAT(parse_recording(std::string(1003, '[')).error().message, HasSubstr("not JSON"));
}

TEST(Recording, NamesThePlanAndTheKeyThatAreWrong) {
  const auto good = ordered_json::parse(to_json(some_recording()));
  const auto said = [&](const char* key, const ordered_json& value) {
    auto bad = good;
    auto& plan = bad["calibration"]["plans"][4];
    if (value.is_null()) {
      plan.erase(key);
    } else {
      plan[key] = value;
    }
    const auto read = parse_recording(bad.dump());
    return read.ok() ? "nothing" : read.error().message;
  };
  EXPECT_EQ(said("chunks", nullptr), "calibration: plan 5: no 'chunks'");
  EXPECT_EQ(said("chunks", 1.5), "calibration: plan 5: chunks: 1.5 is not a whole number from 1 to 4096");
  EXPECT_THAT(said("bytes", -1), HasSubstr("plan 5: bytes: -1 is not a whole number from 0"));
  EXPECT_THAT(said("op", 7), HasSubstr("plan 5: op: a text is wanted"));
  EXPECT_THAT(said("hosts", 3), HasSubstr("plan 5: hosts: 3 is not a whole number from 1 to 2")) << "it has two";
  for (const auto& times : {ordered_json{1e-320}, ordered_json{1e-10}, ordered_json{1e6}, ordered_json{"1"}}) {
    EXPECT_EQ(said("round_seconds", times),
              "calibration: plan 5: round_seconds: a list of times from 1e-09 to 100000 is wanted");
  }
  EXPECT_EQ(said("round_seconds", {1e-9, 1e5}), "nothing");
}

TEST(Recording, AMachineHasANameThatFilesCanHave) {
  auto json = ordered_json::parse(to_json(some_recording()));
  for (const auto& name : {std::string(), std::string(300, 'x'), std::string("../..")}) {
    json["machine"] = name;
    EXPECT_THAT(parse_recording(json.dump()).error().message, HasSubstr("machine: a name of 1 to 200")) << name;
  }
}

TEST(Recording, NobodyWaitsForAMillionPlans) {
  auto json = ordered_json::parse(to_json(some_recording()));
  auto& plans = json["calibration"]["plans"];
  const auto one = plans[0];
  plans = std::vector<ordered_json>(20001, one);
  EXPECT_THAT(parse_recording(json.dump()).error().message, HasSubstr("calibration: plans: a list of up to 20000"));
}

TEST(Recording, NobodyWaitsForOneThatIsTooLong) {
  auto json = ordered_json::parse(to_json(some_recording()));
  json["hosts"] = 1;
  json["ranks_of_host"] = 4096;
  auto one = json["calibration"]["plans"][0];
  one.update(
      {{"algorithm", "one_shot"}, {"op", "all_reduce"}, {"hosts", 1}, {"ranks_of_host", 4096}, {"chunks", 4096}});
  json["calibration"]["plans"] = {one};
  EXPECT_THAT(parse_recording(json.dump()).error().message,
              HasSubstr("4096 chunks: too much to be simulated again and again"));
}

TEST(Recording, ManyKeysAreReadSoon) {
  std::string text = R"({"machine": "m")";
  for (int i = 0; i < 1'000'000; ++i) {
    text += fmt::format(R"(,"{:07}":0)", i);
  }
  EXPECT_FALSE(parse_recording(text + "}"));  // looked for among all before it, each would take an hour together
}

TEST(Recording, FilesThatCannotBeReadAreNamed) {
  EXPECT_THAT(read_recording("/no/such/file").error().message, HasSubstr("cannot read /no/such/file"));
  EXPECT_THAT(read_recording("/dev/zero").error().message, HasSubstr("cannot read /dev/zero: it is no file"));
  const std::string self = std::filesystem::canonical("/proc/self/exe");
  EXPECT_THAT(read_recording(self).error().message, HasSubstr(self + " is no recording of tutti bench --links"));
}

}  // namespace
}  // namespace bench
