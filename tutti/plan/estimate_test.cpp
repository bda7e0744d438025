#include "tutti/plan/estimate.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include <gtest/gtest.h>

#include "tutti/plan/network_json.h"
#include "tutti/plan/price.h"

namespace tutti::plan {
namespace {

Network cluster(const std::string& name) {
  const auto folder = std::filesystem::path(__FILE__).parent_path().parent_path().parent_path() / "clusters";
  return read_network((folder / (name + ".json")).string()).value();
}

/// Networks with few ranks to a group, so that small numbers of ranks cross all levels.
std::vector<Network> networks() {
  std::vector<Network> all{cluster("fat-tree"), cluster("dragonfly"), cluster("two-hosts-1gbit")};
  all[0].levels[1].members = 4;
  all[0].levels[2].link = 100e9;
  all[1].levels[0].members = 4;
  all[1].levels[1].members = 4;
  all[2].levels[0].members = 1;
  all[2].levels[1].members = 0;
  return all;
}

struct Errors {
  std::vector<double> relative;

  double median() {
    std::sort(relative.begin(), relative.end());
    return relative[relative.size() / 2];
  }
  double worst() const { return *std::max_element(relative.begin(), relative.end()); }
};

/// How far estimates are from simulations, over networks, ranks and sizes.
Errors compare(Op op, Algorithm algorithm, unsigned chunks, const std::vector<int>& rank_counts = {16, 32, 64, 128}) {
  Errors errors;
  for (const auto& network : networks()) {
    for (const auto ranks : rank_counts) {
      for (const std::size_t bytes : {std::size_t{64} << 10, std::size_t{1} << 20, std::size_t{25} << 20}) {
        const Fabric fabric(network, ranks);
        Request request{.op = op, .algorithm = algorithm, .ranks = ranks, .chunks = chunks};
        if (algorithm == Algorithm::hybrid) {
          request.hosts = hosts_of(fabric);
          request.leaders = chunks == 1 ? 1 : static_cast<unsigned>(request.hosts.back().size());
        }
        const auto simulated = simulate(build(request).value(), bytes, network).value().seconds;
        errors.relative.push_back(std::abs(estimate(request, bytes, fabric).seconds / simulated - 1));
      }
    }
  }
  return errors;
}

// Those that are always estimated when ranks are many.

TEST(Estimate, RingsAreNearlyRight) {
  for (const unsigned chunks : {1, 4}) {
    auto errors = compare(Op::all_reduce, Algorithm::ring, chunks, {16, 64, chunks == 1 ? 128 : 32});
    EXPECT_LT(errors.median(), 0.01);
    EXPECT_LT(errors.worst(), 0.06);
  }
  EXPECT_LT(compare(Op::all_gather, Algorithm::ring, 1, {16, 64}).worst(), 0.06);
  EXPECT_LT(compare(Op::reduce_scatter, Algorithm::ring, 4, {16, 64}).worst(), 0.06);
}

TEST(Estimate, HalvingIsNearlyRight) {
  auto errors = compare(Op::all_reduce, Algorithm::halving_doubling, 1);
  EXPECT_LT(errors.median(), 0.01);
  EXPECT_LT(errors.worst(), 0.06);
  auto in_chunks = compare(Op::all_reduce, Algorithm::halving_doubling, 4);
  EXPECT_LT(in_chunks.median(), 0.05);  // chunks of different steps share links, too
  EXPECT_LT(in_chunks.worst(), 0.2);
}

TEST(Estimate, EveryoneToEverybodyIsNearlyRight) {
  auto direct = compare(Op::all_reduce, Algorithm::direct, 1, {16, 32, 64});
  EXPECT_LT(direct.median(), 0.03);
  EXPECT_LT(direct.worst(), 0.15);
  auto one_shot = compare(Op::all_reduce, Algorithm::one_shot, 1, {16, 48});
  EXPECT_LT(one_shot.median(), 0.02);
  EXPECT_LT(one_shot.worst(), 0.05);
  for (const auto algorithm : {Algorithm::direct, Algorithm::one_shot}) {
    auto in_chunks = compare(Op::all_reduce, algorithm, 4, {16, 32});
    EXPECT_LT(in_chunks.median(), 0.03) << to_string(algorithm);
    EXPECT_LT(in_chunks.worst(), 0.15) << to_string(algorithm);
  }
}

TEST(Estimate, HybridsAreNearlyRight) {
  for (const unsigned chunks : {1, 4}) {
    auto errors = compare(Op::all_reduce, Algorithm::hybrid, chunks);
    EXPECT_LT(errors.median(), 0.02);
    EXPECT_LT(errors.worst(), chunks == 1 ? 0.12 : 0.3);
  }
}

// Those of which a few chunks can be simulated for many ranks: the estimate only has to find good chunks.

TEST(Estimate, PipelinesAreRoughlyRight) {
  for (const auto algorithm : {Algorithm::tree, Algorithm::double_tree, Algorithm::recursive_doubling}) {
    for (const unsigned chunks : {1, 8}) {
      auto errors = compare(Op::all_reduce, algorithm, chunks);
      EXPECT_LT(errors.median(), 0.15) << to_string(algorithm) << " " << chunks;
      EXPECT_LT(errors.worst(), 0.35) << to_string(algorithm) << " " << chunks;
    }
  }
}

TEST(Estimate, OtherOperationsAreRoughlyRight) {
  for (const auto op : {Op::broadcast, Op::reduce, Op::all_to_all, Op::gather, Op::scatter}) {
    for (const auto algorithm : algorithms_for(op)) {
      if (algorithm == Algorithm::binomial && op != Op::broadcast) {
        continue;  // as many messages as ranks: always simulated
      }
      for (const unsigned chunks : {1, 4}) {
        if (chunks == 1 || takes_chunks(algorithm, op)) {
          auto errors = compare(op, algorithm, chunks, {16, 32});
          EXPECT_LT(errors.median(), 0.3) << to_string(op) << " " << to_string(algorithm) << " " << chunks;
        }
      }
    }
  }
}

TEST(Estimate, OneRankIsACopy) {
  auto network = networks()[0];
  for (const auto algorithm : {Algorithm::ring, Algorithm::direct, Algorithm::tree}) {
    const Request request{.algorithm = algorithm, .ranks = 1};
    EXPECT_NEAR(estimate(request, 1000, Fabric(network, 1)).seconds,
                simulate(build(request).value(), 1000, network).value().seconds, 1e-12);
  }
}

}  // namespace
}  // namespace tutti::plan
