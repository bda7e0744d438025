#include "tutti/optim/layerwise.h"

#include <cmath>

#include <gtest/gtest.h>
#include <torch/torch.h>

namespace tutti::optim {
namespace {

TEST(Layerwise, MatricesAreWeightsAndNoBiases) {
  for (const auto& [shape, is_matrix] : std::vector<std::pair<std::vector<std::int64_t>, bool>>{
           {{}, false}, {{5}, false}, {{5, 1}, true}, {{2, 3, 1, 1}, true}}) {
    const auto parameter = torch::zeros(shape);
    EXPECT_EQ(includes(Parameters::matrices, parameter), is_matrix);
    EXPECT_TRUE(includes(Parameters::all, parameter));
    EXPECT_FALSE(includes(Parameters::none, parameter));
  }
}

TEST(Layerwise, TrustIsWithinItsBounds) {
  EXPECT_EQ(trust_ratio(6, 2, {}), 3);
  EXPECT_EQ(trust_ratio(6, 2, {0, 2.5}), 2.5);
  EXPECT_EQ(trust_ratio(2, 6, {0.5, 2.5}), 0.5);
}

TEST(Layerwise, TrustIsOneWhereNothingCanBeSaid) {
  EXPECT_EQ(trust_ratio(0, 2, {3, 4}), 1);
  EXPECT_EQ(trust_ratio(2, 0, {3, 4}), 1);
  EXPECT_EQ(trust_ratio(0, 0, {}), 1);
}

TEST(Layerwise, WhatIsNotANumberStaysNone) {
  EXPECT_TRUE(std::isnan(trust_ratio(std::nan(""), 2, {0, 10})));
  EXPECT_TRUE(std::isnan(trust_ratio(2, std::nan(""), {0, 10})));
}

TEST(Layerwise, NormsOfSmallTypesDoNotOverflow) {
  EXPECT_EQ(norm_of(torch::full({16}, 16384, torch::kHalf)), 65536) << "the largest float16 is 65504";
  EXPECT_EQ(norm_of(torch::full({4}, 3, torch::kBFloat16)), 6);
  EXPECT_EQ(norm_of(as_real(torch::complex(torch::full({1}, 3.0), torch::full({1}, 4.0)))), 5);
}

}  // namespace
}  // namespace tutti::optim
