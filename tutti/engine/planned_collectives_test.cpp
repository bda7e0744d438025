// Collectives that are run by plans, over every engine.

#include <array>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tutti/engine/test_ranks.h"

namespace tutti::engine {
namespace {

using kernels::DType;
using ::testing::HasSubstr;

class PlannedCollectives : public testing::TestWithParam<Kind> {};

/// None, fewer than pieces, odd, and more than a ring holds.
constexpr std::array<std::size_t, 4> kLengths{0, 5, 1003, 300'007};

void expect_ok(const Status& status) { ASSERT_TRUE(status.ok()) << status.error().message; }

TEST_P(PlannedCollectives, ByEveryPlan) {
  for (const auto algorithm : plan::algorithms_for(plan::Op::all_reduce)) {
    if (algorithm == plan::Algorithm::hybrid) {
      continue;  // of ranks on several hosts
    }
    run_engines(GetParam(), 3, [&](Engine& engine) {
      expect_ok(engine.choose_plan(Op::all_reduce, PlanChoice{.algorithm = algorithm, .chunks = 2}));
      for (const auto count : kLengths) {
        auto grads = ramp(count, to_int(engine.rank()));
        expect_ok(engine.run(
            {.op = Op::all_reduce, .dtype = DType::float32, .in = {bytes_of(grads)}, .out = {writable(grads)}},
            soon()));
        EXPECT_EQ(grads, ramp_sum(count, engine.ranks())) << to_string(algorithm);
      }
      expect_ok(engine.choose_plan(Op::all_reduce, std::nullopt));
      auto grads = ramp(1003, to_int(engine.rank()));
      expect_ok(engine.run(
          {.op = Op::all_reduce, .dtype = DType::float32, .in = {bytes_of(grads)}, .out = {writable(grads)}}, soon()));
      EXPECT_EQ(grads, ramp_sum(1003, engine.ranks()));
    });
  }
}

TEST_P(PlannedCollectives, DifferentPlansAreAMismatch) {
  run_engines(GetParam(), 2, [](Engine& engine) {
    if (engine.rank() == Rank{1}) {
      expect_ok(engine.choose_plan(Op::all_reduce, PlanChoice{}));
    }
    auto grads = ramp(1003, to_int(engine.rank()));
    const auto run = [&] {
      return engine.run(
          {.op = Op::all_reduce, .dtype = DType::float32, .in = {bytes_of(grads)}, .out = {writable(grads)}}, soon());
    };
    const auto status = run();
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, Code::mismatch);
    EXPECT_THAT(status.error().message, HasSubstr("choose the same one on all ranks"));
    EXPECT_EQ(grads, ramp(1003, to_int(engine.rank())));
    expect_ok(engine.choose_plan(Op::all_reduce, PlanChoice{.algorithm = plan::Algorithm::tree}));
    expect_ok(run());
    EXPECT_EQ(grads, ramp_sum(1003, 2));
  });
}

/// Blocks that do not lie one behind the other on one of the ranks: nobody runs the plan then.
TEST_P(PlannedCollectives, ByAPlanThatNotAllHave) {
  run_engines(GetParam(), 2, [](Engine& engine) {
    expect_ok(engine.choose_plan(Op::reduce_scatter, PlanChoice{}));
    const auto own = to_int(engine.rank());
    std::vector<std::vector<float>> apart{ramp(5000, own), ramp(5000, own)};
    auto together = ramp(5000, own);
    together.insert(together.end(), apart[0].begin(), apart[0].end());
    std::vector<float> sum(5000);
    Call call{.op = Op::reduce_scatter, .dtype = DType::float32, .out = {writable(sum)}};
    for (std::size_t i = 0; i < 2; ++i) {
      call.in.push_back(own == 0 ? bytes_of(together).subspan(i * 20000, 20000) : bytes_of(apart[1 - i]));
    }
    expect_ok(engine.run(call, soon()));
    EXPECT_EQ(sum, ramp_sum(5000, 2));
  });
}

INSTANTIATE_TEST_SUITE_P(Engines, PlannedCollectives,
                         testing::Values(Kind::threads, Kind::processes, Kind::processes_symmetric), kind_name);

}  // namespace
}  // namespace tutti::engine
