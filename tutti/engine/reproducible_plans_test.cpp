// Reproducible sums through every plan: whatever rank has which addends, and however they travel, the bits are the
// same.

#include <array>
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

/// The sum of those that `owner` gives to one rank.
std::vector<std::byte> part_of(const Inputs& inputs, DType dtype, const std::array<int, kAddends>& owner, int rank) {
  std::vector<std::byte> sums(inputs.accumulator_bytes());
  const auto addends = inputs.pointers();
  for (std::size_t i = 0; i < kAddends; ++i) {
    if (owner[i] == rank) {
      kernels::accumulate(dtype, {&addends[i], 1}, sums.data(), kInputs);
    }
  }
  return sums;
}

void check_plan(const Inputs& inputs, DType dtype, int ranks, const plan::Choice& choice,
                const std::array<int, kAddends>& owner) {
  const auto expected = inputs.at_once(ReduceOp::reproducible_sum);
  run_engines(Kind::threads, ranks, [&](Engine& engine) {
    ASSERT_TRUE(engine.choose(Op::all_reduce, choice).ok());
    auto sums = part_of(inputs, dtype, owner, to_int(engine.rank()));
    Call call{.op = Op::all_reduce, .dtype = kernels::accumulator_of(dtype)};
    call.in = {bytes_of(sums)};
    call.out = {writable(sums)};
    const auto status = engine.run(call, soon());
    ASSERT_TRUE(status.ok()) << status.error().message;
    std::vector<std::byte> rounded(expected.size());
    auto* const out = rounded.data();
    kernels::round_accumulators(dtype, sums.data(), {&out, 1}, kInputs);
    EXPECT_EQ(rounded, expected) << choice.text() << ", " << ranks << " ranks";
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
        std::array<int, kAddends> owner{};
        for (auto& each : owner) {
          each = static_cast<int>(random() % static_cast<unsigned>(ranks));  // some ranks may have nothing to add
        }
        check_plan(inputs, GetParam(), ranks, {.algorithm = algorithm, .chunks = chunks}, owner);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, ReproduciblePlans,
                         testing::Values(DType::float32, DType::float64, DType::bfloat16, DType::float16),
                         [](const auto& type) { return std::string(kernels::to_string(type.param)); });

/// One addend of each rank: no accumulators to be seen, but on the way.
TEST(ReproducibleSums, OfOneAddendEach) {
  const Inputs inputs(DType::float32, kAddends, kInputs);
  const auto expected = inputs.at_once(ReduceOp::reproducible_sum);
  for (const auto algorithm : plan::algorithms_for(plan::Op::all_reduce)) {
    if (algorithm == plan::Algorithm::hybrid) {
      continue;
    }
    run_engines(Kind::threads, static_cast<int>(kAddends), [&](Engine& engine) {
      ASSERT_TRUE(engine.choose(Op::all_reduce, plan::Choice{.algorithm = algorithm, .chunks = 2}).ok());
      const auto* const mine = inputs.pointers()[(to_index(engine.rank()) * 3 + 1) % kAddends];
      std::vector<std::byte> tensor(mine, mine + expected.size());
      Call call{.op = Op::all_reduce, .dtype = DType::float32, .reduce = ReduceOp::reproducible_sum};
      call.in = {bytes_of(tensor)};
      call.out = {writable(tensor)};
      const auto status = engine.run(call, soon());
      ASSERT_TRUE(status.ok()) << status.error().message;
      EXPECT_EQ(tensor, expected) << to_string(algorithm);
    });
  }
}

}  // namespace
}  // namespace tutti::engine
