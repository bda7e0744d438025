#include "tutti/verify/diagnose.h"

#include <cmath>
#include <functional>

#include <gtest/gtest.h>

#include "tutti/verify/explanations.h"

namespace tutti::verifying {
namespace {

using Vector = std::vector<double>;

constexpr std::size_t kElements = 61;

/// Numbers that depend on the seed alone.
Vector ramp(int seed, std::size_t elements = kElements) {
  Vector values;
  for (std::size_t i = 0; i < elements; ++i) {
    values.push_back(std::sin((7.7 + 0.37 * seed) * static_cast<double>(i) + 1.3 * seed));
  }
  return values;
}

Vector sum_of(const std::vector<std::pair<double, Vector>>& terms) {
  Vector sum(terms[0].second.size(), 0.0);
  for (const auto& [factor, vector] : terms) {
    for (std::size_t i = 0; i < sum.size(); ++i) {
      sum[i] += factor * vector[i];
    }
  }
  return sum;
}

Situation situation_of(const std::string& mesh, int ranks, std::vector<double> shares = {}) {
  Situation situation{.mesh = MeshLayout::parse(mesh, ranks).value(), .axes = {}, .shares = std::move(shares)};
  for (const auto& axis : situation.mesh.axes()) {
    if (axis.name != "tp") {
      situation.axes.push_back(axis.name);
    }
  }
  const auto count = static_cast<std::size_t>(ranks);
  if (situation.shares.empty()) {
    const auto group = together(situation, Rank{0}, situation.axes).size();
    situation.shares.assign(count, 1.0 / static_cast<double>(group));
  }
  situation.expected_losses.assign(count, std::nan(""));
  situation.observed_losses.assign(count, std::nan(""));
  return situation;
}

Vector own(Rank rank, std::size_t elements = kElements) { return ramp(to_int(rank) + 1, elements); }
Vector older(Rank rank, std::size_t elements = kElements) { return ramp(to_int(rank) + 41, elements); }

Evidence evidence_of(const Situation& situation, const std::vector<Rank>& wrong,
                     const std::function<Vector(Rank)>& observed, std::size_t elements = kElements) {
  const Columns columns{situation.shares.size(), 1};
  std::vector<Vector> vectors(columns.all());
  const auto group = together(situation, wrong[0], situation.axes);
  for (std::size_t i = 0; i < columns.ranks; ++i) {
    const auto rank = to_rank(i);
    vectors[columns.part(rank, 0)] = own(rank, elements);
    vectors[columns.previous(rank)] = older(rank, elements);
    std::vector<std::pair<double, Vector>> all;
    for (const auto member : group) {
      all.emplace_back(1, own(member, elements));
    }
    vectors[columns.whole(rank)] = sum_of(all);
    vectors[columns.observed(rank)] = observed(rank);
  }
  Evidence evidence{.parameter = "weight",
                    .elements = elements,
                    .wrong = wrong,
                    .deviation = Vector(wrong.size(), 1.0),
                    .products = Products(columns.all())};
  for (std::size_t i = 0; i < columns.all(); ++i) {
    for (std::size_t j = 0; j < columns.all(); ++j) {
      for (std::size_t k = 0; k < elements; ++k) {
        evidence.products.at(i, j) += vectors[i][k] * vectors[j][k];
      }
    }
  }
  return evidence;
}

const std::vector<Rank> kThree{Rank{0}, Rank{1}, Rank{2}};

struct Row {
  std::string name;
  std::function<Vector(Rank)> observed;
  Cause cause;
  std::vector<Rank> blamed = {};
  double factor = 1;
};

TEST(Diagnose, EveryCombinationHasItsName) {
  const auto a = own(Rank{0});
  const auto b = own(Rank{1});
  const auto c = own(Rank{2});
  const auto same = [](Vector values) { return [values = std::move(values)](Rank) { return values; }; };
  const std::vector<Row> rows{
      {"summed", same(sum_of({{3, a}, {3, b}, {3, c}})), Cause::scaled, {}, 3},
      {"minus", same(sum_of({{-1, a}, {-1, b}, {-1, c}})), Cause::wrong_sign, kThree, -1},
      {"own",
       [](Rank rank) {
         return sum_of({{3, own(rank)}});
       },
       Cause::not_synchronized,
       {},
       3},
      {"one is missing", same(sum_of({{1, a}, {1, c}})), Cause::missing, {Rank{1}}, 1},
      {"mean of the others", same(sum_of({{1.5, a}, {1.5, c}})), Cause::missing, {Rank{1}}, 1.5},
      {"two are missing", same(sum_of({{1, c}})), Cause::missing, {Rank{0}, Rank{1}}, 1},
      {"twice", same(sum_of({{1, a}, {1, b}, {2, c}})), Cause::counted_twice, {Rank{2}}, 1},
      {"another's rows", same(sum_of({{2, a}, {1, b}})), Cause::replaced, {Rank{2}}, 1},
      {"one sign", same(sum_of({{1, a}, {-1, b}, {1, c}})), Cause::wrong_sign, {Rank{1}}, 1},
      {"clipped", same(sum_of({{0.3, a}, {1, b}, {0.7, c}})), Cause::weighted, {Rank{0}, Rank{2}}, 1},
      {"old", same(sum_of({{1, older(Rank{0})}, {1, older(Rank{1})}, {1, older(Rank{2})}})), Cause::stale_weights,
       kThree},
      {"one is old", same(sum_of({{1, a}, {1, older(Rank{1})}, {1, c}})), Cause::stale_weights, {Rank{1}}},
      {"something else", same(ramp(99)), Cause::unknown, {}},
  };
  const auto situation = situation_of("dp=3", 3);
  for (const auto& row : rows) {
    const auto found = diagnose(situation, std::vector{evidence_of(situation, kThree, row.observed)});
    ASSERT_EQ(found[0].size(), 1U) << row.name;
    EXPECT_EQ(to_string(found[0][0].cause), to_string(row.cause)) << row.name;
    EXPECT_EQ(found[0][0].blamed, row.blamed) << row.name;
    EXPECT_NEAR(found[0][0].factor, row.factor, 1e-6) << row.name;
    EXPECT_EQ(found[0][0].ranks, kThree) << row.name;
  }
}

TEST(Diagnose, AxesAreNamed) {
  const auto situation = situation_of("dp=2,tp=2", 4);  // ranks 0 and 2 belong together
  const std::vector<Rank> wrong{Rank{0}, Rank{2}};
  const auto everything = [](double factor) {
    return [factor](Rank) {
      return sum_of({{factor, own(Rank{0})}, {factor, own(Rank{1})}, {factor, own(Rank{2})}, {factor, own(Rank{3})}});
    };
  };
  for (const double factor : {1.0, 0.5}) {
    const auto found = diagnose(situation, std::vector{evidence_of(situation, wrong, everything(factor))});
    EXPECT_EQ(found[0][0].cause, Cause::over_other_axis);
    EXPECT_EQ(found[0][0].detail, "tp");
    EXPECT_NEAR(found[0][0].factor, factor, 1e-9);
  }
  const auto both = situation_of("dp=2,cp=2", 4);
  const std::vector<Rank> all{Rank{0}, Rank{1}, Rank{2}, Rank{3}};
  const auto over_dp = [](Rank rank) {
    const auto other = Rank{(to_int(rank) + 2) % 4};
    return sum_of({{2, own(rank)}, {2, own(other)}});
  };
  const auto found = diagnose(both, std::vector{evidence_of(both, all, over_dp)});
  EXPECT_EQ(found[0][0].cause, Cause::partly_synchronized);
  EXPECT_EQ(found[0][0].detail, "cp");
}

TEST(Diagnose, UnevenRowsThatCountByRank) {
  const auto situation = situation_of("dp=3", 3, {0.5, 0.2, 0.3});
  const auto means = [](Rank) {
    return sum_of({{1 / 1.5, own(Rank{0})}, {1 / 0.6, own(Rank{1})}, {1 / 0.9, own(Rank{2})}});
  };
  const auto found = diagnose(situation, std::vector{evidence_of(situation, kThree, means)});
  EXPECT_EQ(found[0][0].cause, Cause::weighted);
  EXPECT_EQ(found[0][0].detail, "mean of means");
  EXPECT_NEAR(found[0][0].factor, 1, 1e-9);
}

TEST(Diagnose, WhatIsSmallIsExplainedByTheOthers) {
  const auto situation = situation_of("dp=3", 3);
  const auto clipped = [](std::size_t elements) {
    return [elements](Rank) {
      return sum_of({{0.3, own(Rank{0}, elements)}, {0.9, own(Rank{1}, elements)}, {0.7, own(Rank{2}, elements)}});
    };
  };
  // Two elements, three ranks: anything would fit.
  const std::vector evidence{evidence_of(situation, kThree, clipped(2), 2),
                             evidence_of(situation, kThree, clipped(61))};
  const auto found = diagnose(situation, evidence);
  EXPECT_EQ(found[0][0].cause, Cause::weighted);
  EXPECT_EQ(found[1][0].cause, Cause::weighted);
}

TEST(Diagnose, ParametersMayHaveDifferentCauses) {
  const auto situation = situation_of("dp=3", 3);
  const auto summed = [](Rank) { return sum_of({{3, own(Rank{0})}, {3, own(Rank{1})}, {3, own(Rank{2})}}); };
  const auto lone = [](Rank rank) { return sum_of({{3, own(rank)}}); };
  const std::vector evidence{evidence_of(situation, kThree, summed), evidence_of(situation, kThree, lone),
                             evidence_of(situation, kThree, summed)};
  const auto found = diagnose(situation, evidence);
  EXPECT_EQ(found[0][0].cause, Cause::scaled);
  EXPECT_EQ(found[1][0].cause, Cause::not_synchronized);
  EXPECT_EQ(found[2][0].cause, Cause::scaled);
}

TEST(Diagnose, RanksMayHaveDifferentCauses) {
  const auto situation = situation_of("dp=3", 3);
  const auto left = [](Rank rank) {
    return rank == Rank{1} ? sum_of({{3, own(rank)}}) : sum_of({{1.5, own(Rank{0})}, {1.5, own(Rank{2})}});
  };
  const auto found = diagnose(situation, std::vector{evidence_of(situation, kThree, left)});
  ASSERT_EQ(found[0].size(), 2U);
  EXPECT_EQ(found[0][0].cause, Cause::missing);
  EXPECT_EQ(found[0][0].blamed, std::vector{Rank{1}});
  EXPECT_EQ(found[0][1].cause, Cause::not_synchronized);
  EXPECT_EQ(found[0][1].ranks, std::vector{Rank{1}});
}

TEST(Diagnose, TypesAreKnownByTheirRounding) {
  const auto situation = situation_of("dp=3", 3);
  for (const auto& [name, roundoff] : {std::pair{"bfloat16", 0x1p-8}, {"float16", 0x1p-11}, {"float32", 0x1p-24}}) {
    const auto noisy = [roundoff = roundoff](Rank) {
      auto values = sum_of({{1, own(Rank{0})}, {1, own(Rank{1})}, {1, own(Rank{2})}});
      for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] *= 1 + roundoff * std::sin(static_cast<double>(i * i));
      }
      return values;
    };
    auto evidence = evidence_of(situation, kThree, noisy);
    evidence.deviation.assign(3, 0.9 * roundoff);
    const auto found = diagnose(situation, std::vector{evidence});
    EXPECT_EQ(found[0][0].cause, Cause::rounded) << name;
    EXPECT_EQ(found[0][0].detail, name);
  }
}

}  // namespace
}  // namespace tutti::verifying
