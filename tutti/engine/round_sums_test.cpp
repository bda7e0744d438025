// Sums under way, rounded over all ranks: whoever has which addends, as they are or in accumulators, the bits are the
// same.

#include <random>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tutti/engine/test_ranks.h"
#include "tutti/kernels/reproducible.h"
#include "tutti/kernels/test_hard_inputs.h"

namespace tutti::engine {
namespace {

using kernels::DType;
using kernels::ReduceOp;
using kernels::hard::Bytes;
using kernels::hard::Inputs;
using testing::HasSubstr;

constexpr std::size_t kAddends = 8;

/// What one rank has of them: some as they are, the others in accumulators.
struct Share {
  std::vector<const std::byte*> whole = {};
  std::vector<const std::byte*> added = {};
};

/// By lot, the same on every rank.
std::vector<Share> divide(const Inputs& inputs, int ranks, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<Share> shares(static_cast<std::size_t>(ranks));
  for (const auto* addend : inputs.pointers()) {
    auto& share = shares[random() % shares.size()];
    (random() % 3 == 0 ? share.added : share.whole).push_back(addend);
  }
  return shares;
}

class RoundSums : public testing::TestWithParam<Kind> {};

Bytes sums_of(const Share& share, DType dtype, std::size_t count) {
  Bytes sums(count * kernels::size_of(kernels::accumulator_of(dtype)));
  for (const auto* addend : share.added) {
    kernels::accumulate(dtype, {&addend, 1}, sums.data(), count);
  }
  return sums;
}

Call call_with(const Share& share, DType dtype, const Bytes& sums, Bytes& out) {
  Call call{.op = Op::round_sums, .dtype = dtype, .reduce = ReduceOp::reproducible_avg};
  for (const auto* addend : share.whole) {
    call.in.push_back({addend, out.size()});
  }
  call.ends_with_sums = !share.added.empty();
  if (call.ends_with_sums) {
    call.in.push_back(sums);
  }
  call.divisor = kAddends;
  call.out = {out};
  return call;
}

TEST_P(RoundSums, WhateverEachRankHasTheBitsAreTheSame) {
  for (const int ranks : {1, 2, 3, 4}) {
    run_engines(GetParam(), ranks, [&](Engine& engine) {
      for (const auto dtype : {DType::float32, DType::float64, DType::bfloat16}) {
        for (const std::size_t count : {0U, 1U, 1003U, 100'003U}) {
          const Inputs inputs(dtype, kAddends, count);
          const auto expected = inputs.at_once(ReduceOp::reproducible_avg);
          const auto share = divide(inputs, ranks, static_cast<unsigned>(count))[to_index(engine.rank())];
          const auto sums = sums_of(share, dtype, count);
          Bytes out(expected.size());
          const auto status = engine.run(call_with(share, dtype, sums, out), soon());
          ASSERT_TRUE(status.ok()) << status.error().message;
          EXPECT_EQ(out, expected) << ranks << " ranks, " << count << " of " << kernels::to_string(dtype);
        }
      }
    });
  }
}

TEST_P(RoundSums, TheResultMayBeOneOfTheAddends) {
  run_engines(GetParam(), 3, [&](Engine& engine) {
    const auto memory = engine.reach();
    const Inputs inputs(DType::float32, 3, 5003);
    const auto bytes = 5003 * sizeof(float);
    auto* const mine = memory->allocate(bytes).value();
    std::copy_n(inputs.pointers()[to_index(engine.rank())], bytes, mine);
    Call call{.op = Op::round_sums, .dtype = DType::float32, .reduce = ReduceOp::reproducible_avg};
    call.in = {{mine, bytes}};
    call.out = {{mine, bytes}};
    ASSERT_TRUE(engine.run(call, soon()).ok());
    const auto expected = inputs.at_once(ReduceOp::reproducible_sum);
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), mine));
    memory->free(mine);
  });
}

TEST_P(RoundSums, NobodyHasAnything) {
  run_engines(GetParam(), 2, [&](Engine& engine) {
    Bytes out(1003 * sizeof(float), std::byte{7});
    const auto status = engine.run(call_with({}, DType::float32, {}, out), soon());
    ASSERT_TRUE(status.ok()) << status.error().message;
    EXPECT_EQ(out, Bytes(out.size()));
  });
}

TEST_P(RoundSums, AnotherDivisorOrLengthIsAnErrorOnEveryRank) {
  run_engines(GetParam(), 3, [&](Engine& engine) {
    const auto last = engine.rank() == Rank{2};
    Bytes out(64);
    auto call = call_with({}, DType::float32, {}, out);
    call.divisor = last ? 5 : 4;
    const auto divided = engine.run(call, soon());
    ASSERT_EQ(divided.error().code, Code::mismatch);
    EXPECT_THAT(divided.error().message, HasSubstr("rank 0 divides by 4, and rank 2 by 5"));
    Bytes longer(last ? 68 : 64);
    const auto lengths = engine.run(call_with({}, DType::float32, {}, longer), soon());
    ASSERT_EQ(lengths.error().code, Code::mismatch);
    EXPECT_THAT(lengths.error().message, HasSubstr("(reproducible_avg, float32, 17 elements)"));
    Bytes third(64);
    EXPECT_TRUE(engine.run(call_with({}, DType::float32, {}, third), soon()).ok());  // nothing is broken
  });
}

INSTANTIATE_TEST_SUITE_P(Engines, RoundSums, testing::Values(Kind::threads, Kind::processes, Kind::processes_symmetric),
                         kind_name);

TEST(RoundSumsCall, IsRefusedWhereItMakesNoSense) {
  Bytes out(64);
  Bytes sums(256);
  const std::vector<std::byte> addend(64);
  const auto good = call_with({.whole = {addend.data()}, .added = {addend.data()}}, DType::float32, sums, out);
  EXPECT_TRUE(check_call(good, Rank{0}, 2).ok());
  const auto message = [&](auto&& change) {
    auto call = good;
    change(call);
    const auto status = check_call(call, Rank{0}, 2);
    return status ? std::string() : status.error().message;
  };
  EXPECT_THAT(message([](Call& call) { call.divisor = 0; }), HasSubstr("divisor 0"));
  EXPECT_THAT(message([](Call& call) { call.reduce = ReduceOp::sum; }), HasSubstr("only reproducible_avg"));
  EXPECT_THAT(message([](Call& call) { call.dtype = DType::int32; }), HasSubstr("int32"));
  EXPECT_THAT(message([](Call& call) { call.ends_with_sums = false; }),
              HasSubstr("input 1 has 256 bytes instead of 64"));
  EXPECT_THAT(message([](Call& call) {
                for (int i = 0; i < 9; ++i) {
                  call.in.push_back(call.in[0]);
                }
              }),
              HasSubstr("at most 8"));
  EXPECT_THAT(message([](Call& call) { call.in = {}; }), HasSubstr("no accumulators"));
}

}  // namespace
}  // namespace tutti::engine
