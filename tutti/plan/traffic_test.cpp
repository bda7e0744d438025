#include "tutti/plan/traffic.h"

#include <bit>
#include <cmath>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tutti/plan/test_formula.h"

namespace tutti::plan {
namespace {

Traffic traffic_of(const Request& request) { return count_traffic(build(request).value()); }

std::uint32_t log2_up(std::uint32_t value) { return static_cast<std::uint32_t>(std::bit_width(value - 1)); }

class TrafficOf : public testing::TestWithParam<int> {
 protected:
  double n() const { return GetParam(); }
  std::uint32_t count() const { return static_cast<std::uint32_t>(GetParam()); }
  Traffic of(Algorithm algorithm, Op op = Op::all_reduce, unsigned chunks = 1) const {
    return traffic_of({.op = op, .algorithm = algorithm, .ranks = GetParam(), .chunks = chunks});
  }
};

TEST_P(TrafficOf, EveryPlanIsItsFormula) {
  for (const auto op : kEveryOp) {
    for (const auto algorithm : algorithms_for(op)) {
      auto request = on_two_hosts({.op = op, .algorithm = algorithm, .ranks = GetParam(), .root = Rank{1}});
      for (request.chunks = 1; request.chunks <= (takes_chunks(algorithm, op) ? 3 : 1); ++request.chunks) {
        const auto traffic = traffic_of(request);
        const auto formula = formula_of(request);
        const auto name = fmt::format("{} {}/{}", to_string(op), to_string(algorithm), request.chunks);
        EXPECT_NEAR(traffic.most_sent, formula.sent, 1e-9) << name;
        EXPECT_NEAR(traffic.most_on_a_link, formula.on_a_link, 1e-9) << name;
        EXPECT_EQ(traffic.most_messages, formula.messages) << name;
      }
    }
  }
}

TEST_P(TrafficOf, Ring) {
  EXPECT_EQ(of(Algorithm::ring).longest_chain, 2 * (count() - 1));
  EXPECT_EQ(of(Algorithm::ring, Op::all_reduce, 3).most_messages, 6 * (count() - 1));
}

TEST_P(TrafficOf, Trees) {
  const auto tree = of(Algorithm::tree);
  EXPECT_DOUBLE_EQ(tree.total, 2 * (n() - 1));
  EXPECT_LE(tree.longest_chain, 2 * log2_up(count() + 1));
  const auto twice = of(Algorithm::double_tree);
  EXPECT_NEAR(twice.total, 2 * (n() - 1), 1e-9);
  EXPECT_LE(of(Algorithm::binomial, Op::broadcast).longest_chain, log2_up(count()));
}

TEST_P(TrafficOf, DoublingAndHalving) {
  const bool power = std::has_single_bit(count());
  const auto steps = static_cast<std::uint32_t>(std::bit_width(count())) - 1;
  const auto doubling = of(Algorithm::recursive_doubling);
  EXPECT_LE(doubling.longest_chain, power ? steps : steps + 2);
  EXPECT_GE(doubling.longest_chain, power ? steps : steps + 1);
  const auto halving = of(Algorithm::halving_doubling);
  EXPECT_LE(halving.longest_chain, 2 * steps + (power ? 0 : 2));
  EXPECT_GE(halving.longest_chain, 2 * steps + (power ? 0 : 1));
}

TEST_P(TrafficOf, Direct) {
  EXPECT_EQ(of(Algorithm::one_shot).longest_chain, 1);
  EXPECT_EQ(of(Algorithm::direct).longest_chain, 2);
  EXPECT_LE(of(Algorithm::bruck, Op::all_to_all).longest_chain, log2_up(count()));
}

INSTANTIATE_TEST_SUITE_P(Ranks, TrafficOf, testing::Values(2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 31, 64));

TEST(Traffic, HybridCrossesBetweenHostsOnce) {
  // Two hosts of four: between leaders goes what an all-reduce of two needs.
  Request request{.algorithm = Algorithm::hybrid, .ranks = 8, .hosts = {{}, {}}, .outer = Algorithm::ring};
  for (int rank = 0; rank < 8; ++rank) {
    request.hosts[rank < 4 ? 0 : 1].push_back(Rank{rank});
  }
  const auto plan = build(request).value();
  double between = 0;
  for (std::size_t rank = 0; rank < 8; ++rank) {
    for (const auto& step : plan.programs[rank].steps) {
      if (step.kind == Step::Kind::send && (rank < 4) != (to_int(step.peer) < 4)) {
        between += step.span.count / static_cast<double>(plan.shape.pieces);
      }
    }
  }
  EXPECT_DOUBLE_EQ(between, 2.0);
}

}  // namespace
}  // namespace tutti::plan
