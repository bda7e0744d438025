// Reproducible sums through every plan: whatever rank has which addends, and however they travel, the bits are the
// same.

#include <array>
#include <bit>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "tutti/engine/test_ranks.h"
#include "tutti/kernels/reproducible.h"
#include "tutti/kernels/test_hard_inputs.h"

namespace tutti::engine {
namespace {

using kernels::DType;
using kernels::ReduceOp;

constexpr std::size_t kAddends = 8;
constexpr std::size_t kInputs = 10'007;

using kernels::hard::Inputs;
/// By addend, the rank that has it.
using Owners = std::array<int, kAddends>;

/// The sum of those that one rank has.
std::vector<std::byte> part_of(const Inputs& inputs, DType dtype, const Owners& owner, int rank) {
  std::vector<std::byte> sums(inputs.accumulator_bytes());
  const auto addends = inputs.pointers();
  for (std::size_t i = 0; i < kAddends; ++i) {
    if (owner[i] == rank) {
      kernels::accumulate(dtype, {&addends[i], 1}, sums.data(), inputs.count());
    }
  }
  return sums;
}

/// Adds up what ranks have, and rounds it.
std::vector<std::byte> all_reduced(Engine& engine, const Inputs& inputs, DType dtype, const Owners& owner) {
  auto sums = part_of(inputs, dtype, owner, to_int(engine.rank()));
  Call call{.op = Op::all_reduce, .dtype = kernels::accumulator_of(dtype)};
  call.in = {bytes_of(sums)};
  call.out = {writable(sums)};
  const auto status = engine.run(call, soon());
  EXPECT_TRUE(status.ok()) << status.error().message;
  std::vector<std::byte> rounded(inputs.count() * kernels::size_of(dtype));
  auto* const out = rounded.data();
  kernels::round_accumulators(dtype, sums.data(), {&out, 1}, inputs.count());
  return rounded;
}

/// All ways to cut the addends, in their order, into one run for each rank.
std::vector<Owners> divisions(int ranks) {
  std::vector<Owners> all;
  for (unsigned cuts = 0; cuts < 1U << (kAddends - 1); ++cuts) {
    if (std::popcount(cuts) == ranks - 1) {
      auto& owner = all.emplace_back();
      for (std::size_t i = 1; i < kAddends; ++i) {
        owner[i] = owner[i - 1] + static_cast<int>(cuts >> (i - 1) & 1U);
      }
    }
  }
  return all;
}

/// Everything that an all_reduce on one host can be run by, in some numbers of chunks.
std::vector<OpChoices> all_ways() {
  std::vector<OpChoices> ways{{}};
  for (const char* name : {"at_once", "in_slices", "in_slices/1Ki"}) {
    ways.emplace_back(plan::Choice::parse(name).value());
  }
  for (const auto algorithm : plan::algorithms_for(plan::Op::all_reduce)) {
    for (const unsigned chunks : {1U, 2U, 5U}) {
      if (algorithm != plan::Algorithm::hybrid) {
        ways.emplace_back(plan::Choice{.algorithm = algorithm, .chunks = chunks});
      }
    }
  }
  return ways;
}

void check_plan(const Inputs& inputs, DType dtype, int ranks, const plan::Choice& choice, const Owners& owner) {
  const auto expected = inputs.at_once(ReduceOp::reproducible_sum);
  run_engines(Kind::threads, ranks, [&](Engine& engine) {
    ASSERT_TRUE(engine.choose(Op::all_reduce, choice).ok());
    EXPECT_EQ(all_reduced(engine, inputs, dtype, owner), expected) << choice.text() << ", " << ranks << " ranks";
  });
}

class ReproduciblePlans : public testing::TestWithParam<DType> {};

TEST_P(ReproduciblePlans, HoweverAddendsAreDivided) {
  const Inputs inputs(GetParam(), kAddends, kInputs);
  std::mt19937 random(4711);
  for (int ranks = 1; ranks <= 8; ++ranks) {
    for (const auto algorithm : plan::algorithms_for(plan::Op::all_reduce)) {
      if (algorithm == plan::Algorithm::hybrid) {
        continue;  // of ranks on several hosts
      }
      for (const unsigned chunks : {1U, 3U}) {
        Owners owner{};
        for (auto& each : owner) {
          each = static_cast<int>(random() % static_cast<unsigned>(ranks));  // some ranks may have nothing to add
        }
        check_plan(inputs, GetParam(), ranks, {.algorithm = algorithm, .chunks = chunks}, owner);
      }
    }
  }
}

/// Fewer inputs than elsewhere: there are 128 divisions, and two dozen ways for each.
TEST_P(ReproduciblePlans, EveryDivisionByEveryWay) {
  constexpr std::size_t kFewInputs = 331;
  const Inputs inputs(GetParam(), kAddends, kFewInputs);
  const auto expected = inputs.at_once(ReduceOp::reproducible_sum);
  const auto ways = all_ways();
  for (int ranks = 1; ranks <= static_cast<int>(kAddends); ++ranks) {
    const auto owners = divisions(ranks);
    run_engines(Kind::threads, ranks, [&](Engine& engine) {
      for (const auto& way : ways) {
        ASSERT_TRUE(engine.choose(Op::all_reduce, way).ok());
        for (const auto& owner : owners) {
          ASSERT_EQ(all_reduced(engine, inputs, GetParam(), owner), expected)
              << way.ordinary.text() << ", " << ranks << " ranks";
        }
      }
    });
  }
}

/// Bits of one addend of each rank, added up or averaged: no accumulators to be seen, but on the way.
void check_one_addend_each(DType dtype, ReduceOp reduce, int ranks) {
  const Inputs inputs(dtype, static_cast<std::size_t>(ranks), kInputs);
  const auto expected = inputs.at_once(reduce);
  run_engines(Kind::threads, ranks, [&](Engine& engine) {
    for (const auto& way : all_ways()) {
      ASSERT_TRUE(engine.choose(Op::all_reduce, way).ok());
      const auto* const mine = inputs.pointers()[(to_index(engine.rank()) * 3 + 1) % static_cast<std::size_t>(ranks)];
      std::vector<std::byte> tensor(mine, mine + expected.size());
      Call call{.op = Op::all_reduce, .dtype = dtype, .reduce = reduce};
      call.in = {bytes_of(tensor)};
      call.out = {writable(tensor)};
      const auto status = engine.run(call, soon());
      ASSERT_TRUE(status.ok()) << status.error().message;
      ASSERT_EQ(tensor, expected) << way.ordinary.text() << ", " << to_string(reduce) << ", " << ranks << " ranks";
    }
  });
}

TEST_P(ReproduciblePlans, OfOneAddendEach) {
  for (const int ranks : {1, 2, 5, 8}) {  // of one, zeros and NaNs lose their signs
    check_one_addend_each(GetParam(), ReduceOp::reproducible_sum, ranks);
    check_one_addend_each(GetParam(), ReduceOp::reproducible_avg, ranks);
  }
}

INSTANTIATE_TEST_SUITE_P(Types, ReproduciblePlans,
                         testing::Values(DType::float32, DType::float64, DType::bfloat16, DType::float16),
                         [](const auto& type) { return std::string(kernels::to_string(type.param)); });

}  // namespace
}  // namespace tutti::engine
