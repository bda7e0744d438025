// Ranks that call different things, in every way: all of them get an error that names both calls, no output is touched,
// and the group goes on.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/chaos/long_run.h"
#include "tests/chaos/random_calls.h"
#include "tutti/engine/test_ranks.h"

namespace tutti::chaos {
namespace {

using engine::Engine;
using engine::Op;
using ::testing::HasSubstr;

enum class Difference { op, dtype, reduce, root, count };
constexpr int kDifferences = 5;

/// Another draw that differs from the first in that way, as far as it can.
Draw differing(Draw drawn, Difference difference, std::mt19937& random, int ranks) {
  switch (difference) {
    case Difference::op: {
      const auto old = drawn.op;
      while (drawn.op == old) {
        drawn.op = draw(random, ranks, 1 << 16).op;
      }
      break;
    }
    case Difference::dtype:
      if (drawn.op == Op::round_sums) {  // of floats only
        drawn.dtype = drawn.dtype == kernels::DType::float64 ? kernels::DType::float32 : kernels::DType::float64;
        break;
      }
      drawn.dtype = drawn.dtype == kernels::DType::int32 ? kernels::DType::float32 : kernels::DType::int32;
      break;
    case Difference::reduce:
      drawn.reduce = drawn.reduce == kernels::ReduceOp::sum ? kernels::ReduceOp::max : kernels::ReduceOp::sum;
      break;
    case Difference::root: drawn.root = Rank{(to_int(drawn.root) + 1) % ranks}; break;
    case Difference::count: drawn.count += 1 + random() % 5000; break;
  }
  return drawn;
}

/// Whether such a difference means anything for the operation.
bool matters(Op op, Difference difference) {
  const bool reduces = op == Op::all_reduce || op == Op::reduce || op == Op::reduce_scatter;
  const bool rooted = op == Op::reduce || op == Op::broadcast || op == Op::gather || op == Op::scatter;
  switch (difference) {
    case Difference::op: return true;
    case Difference::dtype:
    case Difference::count: return op != Op::barrier;
    case Difference::reduce: return reduces;
    case Difference::root: return rooted;
  }
  return false;
}

TEST(Mismatches, EveryKindIsAnErrorOnEveryRank) {
  const int rounds = times(100, 500) * kDifferences;
  engine::run_engines(engine::Kind::processes, 3, [rounds](Engine& engine) {
    std::mt19937 random(seed());
    for (int round = 0; round < rounds; ++round) {
      const auto difference = static_cast<Difference>(round % kDifferences);
      auto common = draw(random, engine.ranks(), 1 << 18);
      while (!matters(common.op, difference)) {
        common = draw(random, engine.ranks(), 1 << 18);
      }
      const Rank odd_one{static_cast<std::int32_t>(random() % 3)};
      const auto other = differing(common, difference, random, engine.ranks());
      RandomCall call(engine, engine.rank() == odd_one ? other : common);
      std::vector<std::vector<std::byte>> before;
      for (const auto& block : call.call().out) {
        before.emplace_back(block.begin(), block.end());
      }
      const auto status = engine.run(call.call(), engine::soon());
      ASSERT_FALSE(status.ok()) << "round " << round;
      ASSERT_EQ(status.error().code, Code::mismatch) << status.error().message;
      EXPECT_THAT(status.error().message, HasSubstr(std::string(to_string(common.op))));
      EXPECT_THAT(status.error().message, HasSubstr(std::string(to_string(other.op))));
      for (std::size_t i = 0; i < before.size(); ++i) {
        ASSERT_TRUE(std::equal(before[i].begin(), before[i].end(), call.call().out[i].begin())) << "round " << round;
      }
      const RandomCall good(engine, common);
      const auto after = engine.run(good.call(), engine::soon());
      ASSERT_TRUE(after.ok()) << after.error().message;
      ASSERT_TRUE(good.right(engine)) << "round " << round;
    }
  });
}

}  // namespace
}  // namespace tutti::chaos
