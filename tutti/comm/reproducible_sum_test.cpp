#include "tutti/comm/reproducible_sum.h"

#include <gtest/gtest.h>

#include "tutti/comm/exception.h"
#include "tutti/comm/world.h"

namespace tutti {
namespace {

constexpr int kAddends = 8;

/// The same on every rank: exponents all over the range, now and then something that is no number.
at::Tensor addend(int number, at::ScalarType type) {
  auto generator = at::detail::createCPUGenerator(100 + static_cast<unsigned>(number));
  const auto exponents = at::rand({1003}, generator, at::kDouble) * 60 - 30;
  auto values = at::randn({1003}, generator, at::kDouble) * at::exp2(exponents);
  values[17] = number == 3 ? INFINITY : 1.0;
  values[18] = number == 3 ? INFINITY : number == 5 ? -INFINITY : 1.0;
  values[19] = number == 6 ? NAN : 1.0;
  return values.to(type);
}

bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  return std::memcmp(a.const_data_ptr(), b.const_data_ptr(), a.nbytes()) == 0;
}

at::Tensor on_one_rank(at::ScalarType type) {
  ReproducibleSum sum(addend(0, type));
  for (int i = 0; i < kAddends; ++i) {
    sum.add(addend(i, type));
  }
  return sum.rounded(kAddends);
}

TEST(ReproducibleSum, TheDivisionOverRanksDoesNotMatter) {
  for (const auto type : {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf, at::kComplexFloat}) {
    const auto expected = on_one_rank(type);
    for (const int ranks : {1, 2, 3, 5, 8}) {
      run_ranks(ranks, [&](Group& group) {
        const auto me = to_int(group.rank());
        ReproducibleSum sum(addend(0, type));
        ReproducibleSum second(addend(0, type));
        for (int i = kAddends - 1; i >= 0; --i) {
          if (i * i % ranks == me) {  // unevenly
            (i % 2 == 0 ? sum : second).add(addend(i, type));
          }
        }
        sum.merge(second);
        sum.all_reduce(group).wait();
        int counted = 0;
        for (int rank = 0; rank < ranks; ++rank) {
          for (int i = 0; i < kAddends; ++i) {
            counted += i * i % ranks == rank ? 1 : 0;
          }
        }
        ASSERT_EQ(counted, kAddends);
        EXPECT_TRUE(same_bits(sum.rounded(kAddends), expected)) << ranks << " ranks, " << c10::toString(type);
      });
    }
  }
}

TEST(ReproducibleSum, OneTensorOfEachRankNeedsNoAccumulator) {
  ReproducibleSum whole(addend(0, at::kFloat));
  for (int i = 0; i < 3; ++i) {
    whole.add(addend(i, at::kFloat));
  }
  run_ranks(3, [&](Group& group) {
    auto tensor = addend(2 - to_int(group.rank()), at::kFloat);
    group.all_reduce(tensor, ReduceOp::reproducible_avg).wait();
    EXPECT_TRUE(same_bits(tensor, whole.rounded(3)));
  });
}

TEST(ReproducibleSum, WhatDoesNotFitIsRefused) {
  ReproducibleSum sum(at::zeros({3}));
  EXPECT_THROW(sum.add(at::zeros({4})), Exception);
  EXPECT_THROW(sum.add(at::zeros({3}, at::kDouble)), Exception);
  EXPECT_THROW(sum.merge(ReproducibleSum(at::zeros({4}))), Exception);
  EXPECT_THROW((void)sum.rounded(0), Exception);
  EXPECT_THROW(ReproducibleSum(at::zeros({3}, at::kLong)), Exception);
}

}  // namespace
}  // namespace tutti
