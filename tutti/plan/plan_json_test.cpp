#include "tutti/plan/plan_json.h"

#include <sys/resource.h>

#include <algorithm>
#include <random>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tutti/plan/algorithms.h"
#include "tutti/plan/picture.h"
#include "tutti/plan/prove.h"

namespace tutti::plan {
namespace {

using testing::HasSubstr;

std::string complaint(const std::string& text) {
  const auto plans = parse_plans(text, "my.json");
  return plans ? "" : plans.error().message;
}

/// A broadcast to one other rank, with something else in the place of a part.
std::string broadcast(std::string_view part = "", std::string_view instead = "") {
  std::string text =
      R"({"op": "broadcast", "pieces": 1, "ranks": [
         {"steps": [{"kind": "combine", "span": {"buffer": "output", "begin": 0, "count": 1},
                     "sources": [{"buffer": "input", "begin": 0, "count": 1}]},
                    {"kind": "send", "peer": 1, "span": {"buffer": "output", "begin": 0, "count": 1}, "after": [0]}]},
         {"steps": [{"kind": "receive", "peer": 0, "span": {"buffer": "output", "begin": 0, "count": 1}}]}]})";
  if (!part.empty()) {
    const auto at = text.find(part);
    EXPECT_NE(at, std::string::npos) << part;
    text.replace(at, part.size(), instead);
  }
  return text;
}

TEST(PlanJson, IsReadAsItIsWritten) {
  for (const auto op : {Op::all_reduce, Op::reduce_scatter, Op::all_gather, Op::broadcast, Op::reduce, Op::all_to_all,
                        Op::gather, Op::scatter}) {
    for (const auto algorithm : algorithms_for(op)) {
      Request request{.op = op, .algorithm = algorithm, .ranks = 5, .root = Rank{has_root(op) ? 3 : 0}};
      request.chunks = takes_chunks(algorithm, op) ? 3 : 1;
      request.hosts = {{Rank{0}, Rank{4}}, {Rank{1}, Rank{2}, Rank{3}}};
      const auto text = to_json({{std::string(to_string(algorithm)), build(request).value()}});
      const auto read = parse_plans(text, "it").value();
      ASSERT_EQ(read.size(), 1);
      EXPECT_EQ(read[0].algorithm, to_string(algorithm));
      EXPECT_EQ(to_json(read), text);
      EXPECT_FALSE(prove(read[0].plan)) << to_string(op) << " " << to_string(algorithm);
    }
  }
}

TEST(PlanJson, ByHandNeedsOnlyWhatDoesNotFollow) {
  const auto plans = parse_plans(broadcast(), "my.json");
  ASSERT_TRUE(plans) << plans.error().message;
  EXPECT_EQ(plans.value()[0].plan.shape.ranks, 2);
  EXPECT_FALSE(prove(plans.value()[0].plan));
}

TEST(PlanJson, SaysWhatIsWrong) {
  for (const auto& [text, sentence] : std::vector<std::pair<std::string, std::string>>{
           {"", "my.json: not JSON, from line 1 on"},
           {"[\n{\n\"op\": }]", "my.json: not JSON, from line 3 on"},
           {"[]", "there is no plan in it"},
           {"17", "the whole: expected an object with op, algorithm, root, pieces, ranks"},
           {std::string(100'000, '['), "lists within lists"},
           {"1e999999", "not JSON"},
           {broadcast("broadcast", "broadcost"), "op: no operation 'broadcost'"},
           {broadcast("\"pieces\": 1", "\"pieces\": 0"), "pieces: expected at least one"},
           {broadcast("\"pieces\": 1", "\"pieces\": 1152921504606846976"), "pieces: expected a whole number from 0 to"},
           {broadcast("\"pieces\": 1", "\"pieces\": 1e300"), "pieces: expected a whole number"},
           {broadcast("\"pieces\": 1", "\"pieces\": 1, \"root\": 2"), "root: expected a whole number from 0 to 1"},
           {R"({"op": "broadcast", "pieces": 1, "ranks": 1152921504606846976})", "ranks: expected a list"},
           {R"({"op": "broadcast", "pieces": 1, "ranks": []})", "ranks: expected at least one"},
           {broadcast("\"after\": [0]", "\"after\": 0"), "ranks[0].steps[1].after: expected a list"},
           {broadcast("\"after\"", "\"aftr\""),
            "ranks[0].steps[1]: expected kind, peer, span, like, after, and no 'aftr'"},
           {broadcast("\"peer\": 1", "\"peer\": -1"), "ranks[0].steps[1].peer: expected a whole number"},
           {broadcast("receive", "recieve"), "ranks[1].steps[0].kind: expected send, receive or combine"},
           {broadcast("\"begin\": 0", "\"begin\": 4294967296"),
            "ranks[0].steps[0].span.begin: expected a whole number"},
           {broadcast("\"pieces\": 1", "\"pieces\": 1, \"algorithm\": \"a\\u001b[31m\""),
            "algorithm: expected a short name"},
           {broadcast("\"pieces\": 1", "\"pieces\": 1, \"a\\nb\": 1"), "root, pieces, ranks, and no other"},
           {broadcast("output", "outputs"), "ranks[0].steps[0].span.buffer: expected input, output or scratch"},
           {broadcast("{\"steps\"", "{\"scratch_pieces\": 16777217, \"steps\""),
            "ranks[0].scratch_pieces: expected"}}) {
    EXPECT_THAT(complaint(text), HasSubstr(sentence));
  }
  EXPECT_THAT(read_plans("/nowhere.json").error().message, HasSubstr("cannot read /nowhere.json: No such file"));
}

TEST(PlanJson, WhatWouldTakeTooMuchMemoryIsRefused) {
  std::string ranks = R"({"steps": []})";
  for (int i = 0; i < 5000; ++i) {
    ranks += R"(,{"steps": []})";
  }
  EXPECT_THAT(complaint(fmt::format(R"({{"op": "all_to_all", "pieces": 1000000, "ranks": [{}]}})", ranks)),
              HasSubstr("the plan: 5001 ranks with blocks of 1000000 pieces: too large to be followed here"));
}

/// One rank that copies its block, and then that to itself, each time after the time before.
std::string copies(std::uint32_t pieces, int times) {
  const auto copy = [&](std::string_view from, std::string_view after) {
    return fmt::format(
        R"({{"kind": "combine", "span": {{"buffer": "output", "begin": 0, "count": {0}}},
            "sources": [{{"buffer": "{1}", "begin": 0, "count": {0}}}], "after": [{2}]}})",
        pieces, from, after);
  };
  std::vector<std::string> steps{copy("input", "")};
  for (int i = 0; i < times; ++i) {
    steps.push_back(copy("output", std::to_string(i)));
  }
  return fmt::format(R"({{"op": "all_reduce", "pieces": {}, "ranks": [{{"steps": [{}]}}]}})", pieces,
                     fmt::join(steps, ","));
}

TEST(PlanJson, WhatWouldTakeTooLongIsRefused) {
  EXPECT_EQ(complaint(copies(3, 100)), "");
  EXPECT_THAT(complaint(copies(8 << 20, 1000)), HasSubstr("too large to be followed here"));
  EXPECT_THAT(complaint(copies(16 << 20, 0)), HasSubstr("too large to be followed here"));
  EXPECT_THAT(complaint(copies(1, 32'768)), HasSubstr("a rank of 32769 steps, 32768 at most"));
  const std::vector<std::string> all(21, copies(100'000, 60));  // each is small enough
  EXPECT_EQ(complaint(copies(100'000, 60)), "");
  EXPECT_THAT(complaint(fmt::format("[{}]", fmt::join(all, ","))), HasSubstr("s or more"));
}

TEST(PlanJson, WhatIsReadIsProvedSoon) {
  std::string sources;
  for (int i = 0; i < 300'000; ++i) {
    sources += R"({"buffer": "input", "begin": 0, "count": 1},)";
  }
  sources.pop_back();
  const auto plans = parse_plans(fmt::format(R"({{"op": "all_reduce", "pieces": 1, "ranks": [{{"steps": [
      {{"kind": "combine", "span": {{"buffer": "output", "begin": 0, "count": 1}}, "sources": [{}]}}]}}]}})",
                                             sources),
                                 "my.json");
  ASSERT_TRUE(plans) << plans.error().message;
  const auto flaw = prove(plans.value()[0].plan);
  ASSERT_TRUE(flaw);
  EXPECT_THAT(flaw->sentence, HasSubstr("gave 300000 times instead of once"));
  EXPECT_LT(describe(plans.value()[0].plan, Rank{0}, 0).size(), 1000);
  EXPECT_FALSE(prove(parse_plans(copies(1, 32'000), "my.json").value()[0].plan));
}

TEST(PlanJson, ManyKeysAreReadSoon) {
  std::string text = "{\"op\": \"all_reduce\"";
  for (int i = 0; i < 1'000'000; ++i) {
    text += fmt::format(R"(,"{:07}":0)", i);
  }
  EXPECT_FALSE(parse_plans(text + "}", "my.json"));  // looked for among all before it, each would take an hour together
}

/// Rank 0 could be 400 messages ahead of rank 1, which waits for rank 2 first: 14 GB, if they were kept.
TEST(PlanJson, WhoIsAheadTakesNoMemory) {
  constexpr int kRanks = 9'000;
  constexpr int kPieces = 1000;
  constexpr int kMessages = 400;
  const auto scratch = [](int begin, int count) {
    return fmt::format(R"({{"buffer": "scratch", "begin": {}, "count": {}}})", begin, count);
  };
  const auto combine = [](const std::string& to, const std::string& sources, const std::string& after) {
    return fmt::format(R"({{"kind": "combine", "span": {}, "sources": [{}], "after": [{}]}},)", to, sources, after);
  };
  const auto last = [](int steps) { return steps == 0 ? std::string() : std::to_string(steps - 1); };
  std::string ahead = combine(scratch(0, 1), R"({"buffer": "input", "begin": 0, "count": 1})", "");
  int steps = 1;
  for (int filled = 1; filled < kPieces;) {
    const int more = std::min(filled, kPieces - filled);
    ahead += combine(scratch(filled, more), scratch(0, more), last(steps++));
    filled += more;
  }
  std::string behind;
  for (int i = 0; i < kMessages; ++i) {
    ahead +=
        fmt::format(R"({{"kind": "send", "peer": 1, "span": {}, "after": [{}]}},)", scratch(0, kPieces), last(steps));
    ++steps;
    ahead += combine(scratch(0, kPieces), scratch(0, kPieces) + "," + scratch(0, kPieces), last(steps));
    ++steps;
    behind += fmt::format(R"(,{{"kind": "receive", "peer": 0, "span": {}, "after": [{}]}})", scratch(0, kPieces), i);
  }
  ahead.pop_back();
  std::string slow = combine(scratch(0, 1), R"({"buffer": "input", "begin": 0, "count": 1})", "");
  for (int i = 0; i < 1500; ++i) {
    slow += combine(scratch(i + 1, 1), scratch(i, 1), std::to_string(i));
  }
  std::string idle;
  for (int rank = 3; rank < kRanks; ++rank) {
    idle += R"(,{"steps": []})";
  }
  const auto text = fmt::format(
      R"({{"op": "all_reduce", "pieces": 1, "ranks": [
          {{"scratch_pieces": {0}, "steps": [{1}]}},
          {{"scratch_pieces": {0}, "steps": [{{"kind": "receive", "peer": 2, "span": {2}}}{3}]}},
          {{"scratch_pieces": 1501, "steps": [{4}{{"kind": "send", "peer": 1, "span": {5}, "after": [1500]}}]}}{6}]}})",
      kPieces, ahead, scratch(0, 1), behind, slow, scratch(1500, 1), idle);
  const auto plans = parse_plans(text, "my.json");
  ASSERT_TRUE(plans) << plans.error().message;
  const auto flaw = prove(plans.value()[0].plan);
  ASSERT_TRUE(flaw);
  EXPECT_THAT(flaw->sentence, HasSubstr("at the end output 0 is empty"));
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  EXPECT_LT(static_cast<double>(usage.ru_maxrss) * 1024, 4e9);
}

/// Letters drawn by lot in the place of others: an error, a flaw or a proof, and each can be drawn.
TEST(PlanJson, AnyTextIsAnErrorOrAPlan) {
  const auto good = to_json({{"ring", build({.ranks = 3, .chunks = 2}).value()}});
  std::mt19937_64 lot(4711);
  int read = 0;
  int flawed = 0;
  for (int i = 0; i < 3000; ++i) {
    auto text = good;
    for (std::size_t times = 1 + lot() % 2; times > 0; --times) {
      auto at = lot() % text.size();
      if (i % 2 == 0) {
        at = std::min(text.find_first_of("0123456789", at), text.size() - 1);
      }
      text[at] = i % 2 == 0 ? static_cast<char>('0' + lot() % 10) : static_cast<char>(lot() % 256);
    }
    if (const auto plans = parse_plans(text, "lot")) {
      ++read;
      const auto flaw = prove(plans.value()[0].plan);
      flawed += flaw ? 1 : 0;
      EXPECT_THAT(draw(plans.value()[0].plan, flaw ? &*flaw : nullptr), HasSubstr("</svg>"));
    }
  }
  EXPECT_GT(read, 1000);
  EXPECT_GT(flawed, 1000);
}

}  // namespace
}  // namespace tutti::plan
