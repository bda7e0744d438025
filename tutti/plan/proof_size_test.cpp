#include "tutti/plan/proof_size.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tutti/plan/prove.h"

namespace tutti::plan {
namespace {

using testing::HasSubstr;

TEST(ProofSize, WhatIsUsualIsBuilt) {
  for (const auto op : {Op::all_reduce, Op::reduce_scatter, Op::all_gather, Op::broadcast, Op::reduce, Op::all_to_all,
                        Op::gather, Op::scatter}) {
    for (const auto algorithm : algorithms_for(op)) {
      Request request{.op = op, .algorithm = algorithm, .ranks = 101, .hosts = {{}, {}}};
      for (int rank = 0; rank < request.ranks; ++rank) {
        request.hosts[static_cast<std::size_t>(rank % 2)].push_back(Rank{rank});
      }
      const auto plan = build_provable(request);
      ASSERT_TRUE(plan) << plan.error().message;
      EXPECT_EQ(plan.value().programs.size(), 101);
    }
  }
}

TEST(ProofSize, WhatIsAbsurdIsRefusedBeforeItIsBuilt) {
  for (const auto& request : {Request{.ranks = 3000}, Request{.ranks = 60'000}, Request{.ranks = 512, .chunks = 64},
                              Request{.algorithm = Algorithm::one_shot, .ranks = 4096},
                              Request{.op = Op::all_to_all, .algorithm = Algorithm::bruck, .ranks = 4096},
                              Request{.op = Op::gather, .algorithm = Algorithm::direct, .ranks = 65'536}}) {
    const auto plan = build_provable(request);
    ASSERT_FALSE(plan) << to_string(request.algorithm);
    EXPECT_THAT(plan.error().message, HasSubstr("too large to be followed here"));
  }
}

TEST(ProofSize, NumbersThatWrapAroundAreRefused) {
  for (const auto chunks : {kMostChunks + 1, 20'000U, 1'431'655'765U, 1U << 31}) {
    EXPECT_THAT(check({.ranks = 3, .chunks = chunks}).error().message,
                HasSubstr("a plan has at least one chunk, and 4096 at most"));
  }
  EXPECT_TRUE(check({.ranks = 3, .chunks = kMostChunks}));
  EXPECT_THAT(check({.ranks = 1 << 21, .chunks = kMostChunks}).error().message, HasSubstr("more than plans can have"));
  EXPECT_THAT(
      check({.op = Op::all_to_all, .algorithm = Algorithm::direct, .ranks = 1 << 20, .chunks = 4096}).error().message,
      HasSubstr("more than plans can have"));
}

}  // namespace
}  // namespace tutti::plan
