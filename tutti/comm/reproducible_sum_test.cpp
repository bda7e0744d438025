#include "tutti/comm/reproducible_sum.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tutti/comm/exception.h"
#include "tutti/comm/symmetric.h"
#include "tutti/comm/world.h"

namespace tutti {
namespace {

using testing::HasSubstr;

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

/// Who keeps addends in memory that the group shares.
enum class Shared { nobody, all, some };

ReproducibleSum sum_of(const at::Tensor& like, const Group& group, Shared shared) {
  const bool mine = shared == Shared::all || (shared == Shared::some && group.rank() != Rank{0});
  return mine ? ReproducibleSum(like, group) : ReproducibleSum(like);
}

/// Of each rank so many, of which some ranks keep all, and others none.
void check_over(const std::vector<int>& counts, at::ScalarType type, Shared shared) {
  const auto ranks = static_cast<int>(counts.size());
  ReproducibleSum whole(addend(0, type));
  const auto of_rank = [&](int rank, ReproducibleSum& sum) {
    for (int i = 0; i < counts[static_cast<std::size_t>(rank)]; ++i) {
      sum.add(addend((rank * 3 + i * 5) % kAddends, type));
    }
  };
  for (int rank = 0; rank < ranks; ++rank) {
    of_rank(rank, whole);
  }
  const auto expected = whole.rounded(7);
  run_ranks(ranks, [&](Group& group) {
    auto sum = sum_of(addend(0, type), group, shared);
    for (int again = 0; again < 2; ++again) {  // in the same memory
      of_rank(to_int(group.rank()), sum);
      EXPECT_TRUE(same_bits(sum.rounded_over(group, 7), expected))
          << testing::PrintToString(counts) << ", " << c10::toString(type);
      EXPECT_EQ(sum.addends(), 0);
    }
    EXPECT_TRUE(same_bits(sum.rounded_over(group), at::zeros_like(expected))) << "nothing added";
  });
}

TEST(ReproducibleSum, RoundedOverRanksWhateverEachHas) {
  for (const auto type : {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf, at::kComplexFloat}) {
    for (const auto& counts : std::vector<std::vector<int>>{
             {3}, {9}, {1, 1, 1}, {4, 4}, {2, 0, 3}, {0, 4}, {9, 1}, {0, 17, 2}, {1, 2, 3, 4, 8}}) {
      for (const auto shared : {Shared::nobody, Shared::all, Shared::some}) {
        check_over(counts, type, shared);
      }
    }
  }
}

TEST(ReproducibleSum, RoundedIntoWhatIsThere) {
  run_ranks(3, [](Group& group) {
    const auto mine = addend(to_int(group.rank()), at::kFloat).slice(0, 0, 1000).view({20, 50});
    ReproducibleSum sum(mine);
    sum.add(mine);
    const auto expected = sum.rounded_over(group, 3);
    auto result = at::zeros({20, 50}).requires_grad_();
    sum.add(mine);
    sum.round_over(group, result, 3);
    EXPECT_TRUE(same_bits(result, expected));
    auto turned = at::zeros({50, 20}).t();
    sum.add(mine);
    sum.round_over(group, turned, 3);
    EXPECT_TRUE(same_bits(turned.contiguous(), expected));
    EXPECT_THROW(sum.round_over(group, at::zeros({1000})), Exception);
    ReproducibleSum shared(mine, group);
    for (const auto& there : {symmetric_empty({20, 50}, at::kFloat, group), at::empty({20, 50})}) {
      shared.add(mine);
      shared.round_over(group, there, 3);
      EXPECT_TRUE(same_bits(there, expected));
    }
  });
}

TEST(ReproducibleSum, InMemoryOfAGroupThatWasShutDownItIsRefused) {
  run_ranks(2, [](Group& group) {
    ReproducibleSum sum(at::ones({7}), group);
    sum.add(at::ones({7}));
    EXPECT_TRUE(sum.rounded_over(group).equal(at::full({7}, 2.0)));
    group.process_group()->shutdown();
    ReproducibleSum late(at::ones({7}), group);
    late.add(at::ones({7}));
    EXPECT_THROW((void)late.rounded_over(group), Exception);
    EXPECT_TRUE(late.rounded().equal(at::ones({7})));
  });
}

TEST(RoundSums, TakesOnlyWhatItCanRead) {
  run_ranks(2, [](Group& group) {
    ASSERT_TRUE(group.can_round_sums());
    const auto result = at::zeros({5});
    const auto refused = [&](const Summands& summands, const at::Tensor& to) -> std::string {
      try {
        group.round_sums(to, summands).wait();
      } catch (const Exception& error) {
        return error.what();
      }
      return "nothing";
    };
    EXPECT_THAT(refused({.addends = {at::ones({4})}}, result), HasSubstr("input 0 has 16 bytes instead of 20"));
    EXPECT_THAT(refused({.addends = {at::ones({5}, at::kDouble)}}, result), HasSubstr("another type"));
    EXPECT_THAT(refused({.addends = {at::Tensor()}}, result), HasSubstr("undefined"));
    EXPECT_THAT(refused({.addends = {at::ones({10}).slice(0, 0, 10, 2)}}, result), HasSubstr("not contiguous"));
    EXPECT_THAT(refused({.sums = at::zeros({20})}, result), HasSubstr("contiguous bytes"));
    EXPECT_THAT(refused({}, at::zeros({10}).slice(0, 0, 10, 2)), HasSubstr("not contiguous"));
    group.round_sums(result, {.addends = {at::full({5}, 2.0), result}}, 2).wait();  // in place of the second
    EXPECT_TRUE(result.equal(at::full({5}, 2.0)));
  });
}

/// More than goes at once.
TEST(ReproducibleSum, RoundedInPortions) {
  constexpr std::int64_t kCount = 1'000'003;
  const auto addend_of = [](int rank, int i) {
    auto generator = at::detail::createCPUGenerator(static_cast<unsigned>(100 * rank + i));
    return at::randn({kCount}, generator);
  };
  ReproducibleSum whole(at::zeros({kCount}));
  for (int rank = 0; rank < 3; ++rank) {
    for (int i = 0; i <= rank; ++i) {
      whole.add(addend_of(rank, i));
    }
  }
  run_ranks(3, [&](Group& group) {
    const auto me = to_int(group.rank());
    ReproducibleSum sum(at::zeros({kCount}));
    for (int i = 0; i <= me; ++i) {
      sum.add(addend_of(me, i));
    }
    EXPECT_TRUE(same_bits(sum.rounded_over(group, 6), whole.rounded(6)));
  });
}

/// One had more than are kept: the next sums are quick again, and right.
TEST(ReproducibleSum, BeginsAnewAfterManyAddends) {
  ReproducibleSum sum(at::zeros({3}));
  for (int i = 0; i < 21; ++i) {
    sum.add(at::full({3}, 0.5));
  }
  EXPECT_TRUE(sum.rounded().eq(10.5).all().item<bool>());
  sum.clear();
  EXPECT_TRUE(sum.rounded().eq(0).all().item<bool>());
  sum.add(at::full({3}, 0.25));
  sum.merge(sum);
  EXPECT_TRUE(sum.rounded().eq(0.5).all().item<bool>());
  for (int i = 0; i < 5; ++i) {
    sum.merge(sum);
  }
  EXPECT_EQ(sum.addends(), 64);
  EXPECT_TRUE(sum.rounded().eq(16).all().item<bool>());
  ReproducibleSum other(at::zeros({3}));
  other.add(at::ones({3}));
  sum.merge(other);
  other.merge(sum);
  EXPECT_TRUE(other.rounded().eq(18).all().item<bool>());
}

TEST(ReproducibleSum, FewerElementsThanRanks) {
  for (const std::int64_t count : {1, 2, 4}) {
    run_ranks(3, [&](Group& group) {
      ReproducibleSum sum(at::zeros({count}, at::kHalf));
      sum.add(at::arange(count).to(at::kHalf) + to_int(group.rank()));
      EXPECT_TRUE(sum.rounded_over(group).equal((3 * at::arange(count) + 3).to(at::kHalf)));
    });
  }
}

TEST(ReproducibleSum, OfNoElements) {
  run_ranks(3, [](Group& group) {
    ReproducibleSum sum(at::zeros({0, 5}));
    sum.add(at::zeros({0, 5}));
    EXPECT_EQ(sum.rounded_over(group, 3).sizes(), (std::vector<std::int64_t>{0, 5}));
  });
}

TEST(ReproducibleSum, WhatDiffersIsAMismatchAndNothingIsLost) {
  run_ranks(3, [](Group& group) {
    const auto me = to_int(group.rank());
    const auto said = [&](ReproducibleSum& sum, std::int64_t divisor) -> std::string {
      try {
        (void)sum.rounded_over(group, divisor);
      } catch (const Exception& error) {
        EXPECT_TRUE(error.code() == Code::mismatch || divisor == 0) << error.what();
        return error.what();
      }
      return "nothing";
    };
    ReproducibleSum sum(at::ones({999}));
    sum.add(at::ones({999}));
    EXPECT_THAT(said(sum, me == 1 ? 2 : 3), HasSubstr("and rank 1 has 999 elements of Float, divided by 2"));
    // Parts of as many elements would be as long.
    ReproducibleSum longer(at::ones({me == 2 ? 1000 : 999}));
    EXPECT_THAT(said(longer, 1), HasSubstr("rank 0 has 999 elements of Float, divided by 1, and rank 2 has 1000"));
    ReproducibleSum other(at::ones({999}, me == 1 ? at::kHalf : at::kFloat));
    EXPECT_THAT(said(other, 1), HasSubstr("and rank 1 has 999 elements of Half"));
    // Refused on one rank: all hear of it.
    auto result = at::zeros({me == 1 ? 998 : 999});
    try {
      sum.round_over(group, result, 3);
      ADD_FAILURE() << "went well";
    } catch (const Exception& error) {
      EXPECT_THAT(error.what(), HasSubstr(me == 1 ? "does not fit"
                                                  : "rank 1 has 999 elements of Float, divided by 3, "
                                                    "which is refused there, or its result"));
    }
    EXPECT_THAT(said(sum, me == 2 ? 0 : 3), HasSubstr(me == 2 ? "divisor 0" : "rank 2 has 999"));
    auto folded = at::zeros({1}).expand({999});
    EXPECT_THROW(sum.round_over(group, me == 0 ? folded : result, 3), Exception);
    EXPECT_TRUE(sum.rounded_over(group, 3).eq(1).all().item<bool>());
  });
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
  EXPECT_THROW(sum.merge(ReproducibleSum(at::zeros({3}, at::kDouble))), Exception);
  EXPECT_THROW((void)sum.rounded(0), Exception);
  EXPECT_THROW(ReproducibleSum(at::zeros({3}, at::kLong)), Exception);
}

}  // namespace
}  // namespace tutti
