#include "tutti/plan/algorithms.h"

#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tutti/plan/prove.h"
#include "tutti/plan/rehearse.h"
#include "tutti/plan/team.h"

namespace tutti::plan {
namespace {

using testing::HasSubstr;

constexpr std::array kOps{Op::all_reduce, Op::reduce_scatter, Op::all_gather, Op::broadcast,
                          Op::reduce,     Op::all_to_all,     Op::gather,     Op::scatter};

/// Hosts of one to three ranks, and more, in turn; their ranks not next to each other.
std::vector<std::vector<Rank>> some_hosts(int ranks, std::size_t count) {
  std::vector<std::vector<Rank>> hosts(count);
  for (int rank = 0; rank < ranks; ++rank) {
    hosts[static_cast<std::size_t>(rank) % count].push_back(Rank{rank});
  }
  return hosts;
}

std::string name_of(const Request& request) {
  auto name = fmt::format("{} {}, {} ranks, root {}, {} chunks", to_string(request.algorithm), to_string(request.op),
                          request.ranks, to_int(request.root), request.chunks);
  if (request.algorithm == Algorithm::hybrid) {
    name += fmt::format(", {} inside of {} hosts, {} between, {} leaders", to_string(request.inner),
                        request.hosts.size(), to_string(request.outer), request.leaders);
  }
  return name;
}

void expect_proved(const Request& request) {
  const auto plan = build(request);
  ASSERT_TRUE(plan) << name_of(request) << ": " << plan.error().message;
  const auto flaw = prove(plan.value());
  EXPECT_FALSE(flaw) << name_of(request) << ": " << to_string(flaw->kind) << ": " << flaw->sentence;
}

/// Where it takes them.
Request in_two_chunks(Op op, Algorithm algorithm, int ranks) {
  return {.op = op,
          .algorithm = algorithm,
          .ranks = ranks,
          .root = Rank{ranks - 1},
          .chunks = takes_chunks(algorithm, op) ? 2U : 1U};
}

class EveryOp : public testing::TestWithParam<Op> {};

TEST_P(EveryOp, EveryPlanUpTo64RanksIsProved) {
  for (const auto algorithm : algorithms_for(GetParam())) {
    for (int ranks = 1; ranks <= 64; ++ranks) {
      Request request{.op = GetParam(), .algorithm = algorithm, .ranks = ranks};
      request.root = Rank{has_root(request.op) ? ranks * 2 / 3 : 0};
      request.chunks = ranks % 3 == 0 && takes_chunks(algorithm, request.op) ? 3 : 1;
      request.hosts = some_hosts(ranks, static_cast<std::size_t>((ranks + 2) / 3));
      expect_proved(request);
    }
  }
}

TEST_P(EveryOp, EveryPlanIsProvedWithOtherNeighbours) {
  for (const auto algorithm : algorithms_for(GetParam())) {
    for (const int ranks : {2, 3, 5, 8, 13}) {
      auto request = in_two_chunks(GetParam(), algorithm, ranks);
      request.hosts = some_hosts(ranks, static_cast<std::size_t>((ranks + 2) / 3));
      for (const auto& host : request.hosts) {
        request.order.insert(request.order.end(), host.begin(), host.end());
      }
      expect_proved(request);
    }
  }
}

TEST_P(EveryOp, EveryPlanGivesTheResultInAnyOrder) {
  for (const auto algorithm : algorithms_for(GetParam())) {
    for (const int ranks : {1, 2, 3, 5, 8, 13}) {
      auto request = in_two_chunks(GetParam(), algorithm, ranks);
      request.hosts = some_hosts(ranks, static_cast<std::size_t>((ranks + 2) / 3));
      const auto plan = build(request).value();
      for (unsigned seed = 0; seed < 6; ++seed) {
        const auto wrong = rehearse(plan, {.seed = seed, .buffered = seed % 2 == 1, .same_memory = seed >= 3});
        EXPECT_FALSE(wrong) << name_of(request) << ": " << *wrong;
      }
    }
  }
}

std::string op_name(const testing::TestParamInfo<Op>& info) { return std::string(to_string(info.param)); }

INSTANTIATE_TEST_SUITE_P(Plans, EveryOp, testing::ValuesIn(kOps), op_name);

/// Hosts of so many ranks, dealt in turn: those of a host are not next to each other.
std::vector<std::vector<Rank>> hosts_of(const std::vector<std::size_t>& sizes) {
  std::vector<std::vector<Rank>> hosts(sizes.size());
  const auto ranks = std::accumulate(sizes.begin(), sizes.end(), std::size_t{0});
  std::size_t host = 0;
  for (std::size_t rank = 0; rank < ranks; ++rank, ++host) {
    while (hosts[host % hosts.size()].size() == sizes[host % hosts.size()]) {
      ++host;
    }
    hosts[host % hosts.size()].push_back(to_rank(rank));
  }
  return hosts;
}

class HybridOver : public testing::TestWithParam<std::vector<std::size_t>> {};

TEST_P(HybridOver, AnyInnerAndOuterAndSeveralLeadersAndChunks) {
  const auto& sizes = GetParam();
  const auto most = static_cast<unsigned>(std::min<std::size_t>(3, *std::min_element(sizes.begin(), sizes.end())));
  Request request{.algorithm = Algorithm::hybrid, .hosts = hosts_of(sizes)};
  request.ranks = static_cast<int>(std::accumulate(sizes.begin(), sizes.end(), std::size_t{0}));
  for (const auto inner : algorithms_inside_hosts()) {
    for (const auto outer : algorithms_between_hosts()) {
      for (unsigned leaders = 1; leaders <= most; ++leaders) {
        for (const unsigned chunks : {1, 3}) {
          request.inner = inner;
          request.outer = outer;
          request.leaders = leaders;
          request.chunks = chunks;
          expect_proved(request);
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Hosts, HybridOver,
                         testing::Values(std::vector<std::size_t>{4}, std::vector<std::size_t>{1, 1, 1},
                                         std::vector<std::size_t>{1, 4}, std::vector<std::size_t>{3, 5},
                                         std::vector<std::size_t>{2, 1, 4}, std::vector<std::size_t>{3, 4, 3},
                                         std::vector<std::size_t>{2, 3, 2, 4}, std::vector<std::size_t>{3, 3, 5, 3, 4},
                                         std::vector<std::size_t>{1, 2, 1, 1, 3, 2}),
                         [](const auto& sizes) { return fmt::format("{}", fmt::join(sizes.param, "_")); });

TEST(Trees, NobodyStandsAboveOthersInBoth) {
  for (std::size_t size = 1; size <= 70; ++size) {
    std::size_t edges = 0;
    for (std::size_t place = 0; place < size; ++place) {
      const auto first = double_branch(size, place, false);
      const auto second = double_branch(size, place, true);
      EXPECT_TRUE(size <= 2 || first.children.empty() || second.children.empty()) << size << " " << place;
      edges += first.children.size() + second.children.size();
      for (const auto child : first.children) {
        EXPECT_EQ(double_branch(size, child, false).parent, place);
      }
      for (const auto child : second.children) {
        EXPECT_EQ(double_branch(size, child, true).parent, place);
      }
    }
    EXPECT_EQ(edges, 2 * (size - 1));
  }
}

std::string complaint(const Request& request) {
  const auto status = check(request);
  return status ? "" : status.error().message;
}

TEST(Requests, BadOnesAreRefusedWithASentence) {
  EXPECT_THAT(complaint({.ranks = 0}), HasSubstr("a plan for 0 ranks"));
  EXPECT_THAT(complaint({.ranks = 3, .root = Rank{3}}), HasSubstr("root 3 of 3 ranks"));
  EXPECT_THAT(complaint({.ranks = 3, .chunks = 0}), HasSubstr("at least one chunk"));
  EXPECT_THAT(complaint({.op = Op::all_to_all, .algorithm = Algorithm::bruck, .ranks = 3, .chunks = 2}),
              HasSubstr("bruck for all_to_all is not divided into chunks"));
  EXPECT_THAT(complaint({.op = Op::gather, .algorithm = Algorithm::ring, .ranks = 3}),
              HasSubstr("no ring for gather; there are direct, binomial"));
  Request hybrid{.algorithm = Algorithm::hybrid, .ranks = 4, .hosts = {{Rank{0}, Rank{1}}, {Rank{2}}}};
  EXPECT_THAT(complaint(hybrid), HasSubstr("every rank has to be on one host"));
  hybrid.hosts[1].push_back(Rank{3});
  EXPECT_EQ(complaint(hybrid), "");
  hybrid.leaders = 3;
  EXPECT_THAT(complaint(hybrid), HasSubstr("3 leaders, but the smallest host has 2 ranks"));
  hybrid.leaders = 1;
  hybrid.inner = Algorithm::bruck;
  EXPECT_THAT(complaint(hybrid), HasSubstr("not bruck"));
  hybrid.inner = Algorithm::tree;
  hybrid.outer = Algorithm::hybrid;
  EXPECT_THAT(complaint(hybrid),
              HasSubstr("double_tree, recursive_doubling, halving_doubling, one_shot, direct, not hybrid"));
  hybrid.hosts[1][1] = Rank{4};
  EXPECT_THAT(complaint(hybrid), HasSubstr("rank 4 of 4"));
}

TEST(Requests, NamesAreReadBack) {
  for (const auto op : kOps) {
    EXPECT_EQ(parse_op(to_string(op)).value(), op);
    for (const auto algorithm : algorithms_for(op)) {
      EXPECT_EQ(parse_algorithm(to_string(algorithm)).value(), algorithm);
    }
  }
  EXPECT_THAT(parse_op("all_ruduce").error().message, HasSubstr("there are all_reduce,"));
  EXPECT_THAT(parse_algorithm("rong").error().message, HasSubstr("there are ring,"));
}

/// Ranks 0, 2, 4 on one host and 1, 3, 5 on another: around a ring, two messages of six are between hosts.
TEST(Order, KeepsARingOnItsHosts) {
  for (const auto op : {Op::all_reduce, Op::all_gather, Op::reduce_scatter}) {
    Request request{.op = op, .ranks = 6};
    const auto crossings = [&] {
      const auto plan = build(request).value();
      int crossing = 0;
      for (int rank = 0; rank < 6; ++rank) {
        const auto& steps = plan.programs[static_cast<std::size_t>(rank)].steps;
        crossing += std::any_of(steps.begin(), steps.end(), [&](const Step& step) {
          return step.kind == Step::Kind::send && (to_int(step.peer) + rank) % 2 == 1;
        });
      }
      return crossing;
    };
    EXPECT_EQ(crossings(), 6);
    request.order = {Rank{0}, Rank{2}, Rank{4}, Rank{1}, Rank{3}, Rank{5}};
    EXPECT_EQ(crossings(), 2);
  }
}

TEST(Order, HasEveryRankOnce) {
  Request request{.ranks = 3};
  for (const auto& bad : std::vector<std::vector<Rank>>{{Rank{0}, Rank{1}, Rank{1}}, {Rank{0}, Rank{1}, Rank{3}}}) {
    request.order = bad;
    EXPECT_THAT(check(request).error().message, HasSubstr("every rank once"));
  }
  request.order = {Rank{0}, Rank{2}};
  EXPECT_THAT(check(request).error().message, HasSubstr("an order of 2 ranks for 3"));
}

}  // namespace
}  // namespace tutti::plan
