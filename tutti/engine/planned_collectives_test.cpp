// Collectives that are run by plans, over every engine.

#include <array>
#include <cstring>

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
      expect_ok(engine.choose(Op::all_reduce, plan::Choice{.algorithm = algorithm, .chunks = 2}));
      for (const auto count : kLengths) {
        auto grads = ramp(count, to_int(engine.rank()));
        expect_ok(engine.run(
            {.op = Op::all_reduce, .dtype = DType::float32, .in = {bytes_of(grads)}, .out = {writable(grads)}},
            soon()));
        EXPECT_EQ(grads, ramp_sum(count, engine.ranks())) << to_string(algorithm);
      }
      expect_ok(engine.choose(Op::all_reduce, {}));
      auto grads = ramp(1003, to_int(engine.rank()));
      expect_ok(engine.run(
          {.op = Op::all_reduce, .dtype = DType::float32, .in = {bytes_of(grads)}, .out = {writable(grads)}}, soon()));
      EXPECT_EQ(grads, ramp_sum(1003, engine.ranks()));
    });
  }
}

/// Every operation on blocks of `count` elements, with results that are known.
void expect_all_operations(Engine& engine, std::size_t count) {
  const auto ranks = static_cast<std::size_t>(engine.ranks());
  const auto own = to_int(engine.rank());
  const auto part = [count](auto blocks, std::size_t i) { return blocks.subspan(4 * count * i, 4 * count); };
  const bool root = engine.rank() == Rank{1};
  const auto mine = ramp(count, own);
  std::vector<float> all;  // of all ranks, in order
  std::vector<float> mine_for_all;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const auto theirs = ramp(count, static_cast<int>(rank));
    all.insert(all.end(), theirs.begin(), theirs.end());
    mine_for_all.insert(mine_for_all.end(), mine.begin(), mine.end());
  }
  const auto run = [&](Op op, bool in_parts, bool out_parts, bool has_in = true, bool has_out = true) {
    const auto& in = op == Op::scatter ? all : in_parts ? mine_for_all : mine;
    std::vector<float> out(out_parts ? count * ranks : count);
    Call call{.op = op, .dtype = DType::float32, .root = Rank{1}};
    for (std::size_t i = 0; has_in && i < (in_parts ? ranks : 1); ++i) {
      call.in.push_back(part(bytes_of(in), i));
    }
    for (std::size_t i = 0; has_out && i < (out_parts ? ranks : 1); ++i) {
      call.out.push_back(part(writable(out), i));
    }
    expect_ok(engine.run(call, soon()));
    return out;
  };
  EXPECT_EQ(run(Op::all_reduce, false, false), ramp_sum(count, engine.ranks()));
  EXPECT_EQ(run(Op::reduce_scatter, true, false), ramp_sum(count, engine.ranks()));
  EXPECT_EQ(run(Op::all_gather, false, true), all);
  EXPECT_EQ(run(Op::all_to_all, true, true), all);
  if (const auto sum = run(Op::reduce, false, false, true, root); root) {
    EXPECT_EQ(sum, ramp_sum(count, engine.ranks()));
  }
  if (const auto got = run(Op::broadcast, false, false, root, !root); !root) {
    EXPECT_EQ(got, ramp(count, 1));
  }
  if (const auto got = run(Op::gather, false, true, true, root); root) {
    EXPECT_EQ(got, all);
  }
  EXPECT_EQ(run(Op::scatter, true, false, root), mine);
}

constexpr std::array kChoosable{Op::all_reduce,     Op::reduce,     Op::broadcast, Op::all_gather,
                                Op::reduce_scatter, Op::all_to_all, Op::gather,    Op::scatter};

TEST_P(PlannedCollectives, ByChoicesOfTheirSize) {
  for (const auto* text : {"at_once", "in_slices", "in_slices/3Ki", "own,2Ki:at_once,8Ki:in_slices/1Ki,1Mi:direct",
                           "direct,8Ki:own,64Ki:at_once"}) {
    run_engines(GetParam(), 3, [&](Engine& engine) {
      for (const auto op : kChoosable) {
        expect_ok(engine.choose(op, plan::Choices::parse(text).value()));
      }
      for (const auto count : kLengths) {
        expect_all_operations(engine, count);
      }
    });
  }
}

TEST_P(PlannedCollectives, ByChoicesOfTheirMemory) {
  run_engines(GetParam(), 2, [](Engine& engine) {
    for (const auto op : kChoosable) {
      expect_ok(
          engine.choose(op, {plan::Choices::parse("direct").value(), plan::Choices::parse("at_once,4Ki:own").value()}));
    }
    for (const auto count : kLengths) {
      expect_all_operations(engine, count);
    }
  });
}

/// One rank's tensor is in reach, the other's is not: what was chosen for either is not for both.
TEST(ChosenCollectives, ByDifferentChoicesSinceMemoriesDiffer) {
  for (const int status : run_processes(2, [](Engine& engine) {
         expect_ok(engine.choose(
             Op::all_reduce, {plan::Choices::parse("ring").value(), plan::Choices::parse("in_slices/1Ki").value()}));
         for (const std::size_t count : {5U, 1003U, 300'007U}) {
           auto grads = ramp(count, to_int(engine.rank()));
           auto* const shared = engine.reach()->allocate(4 * count).value();
           std::memcpy(shared, grads.data(), 4 * count);
           const Block block = engine.rank() == Rank{0} ? Block(shared, 4 * count) : writable(grads);
           expect_ok(
               engine.run({.op = Op::all_reduce, .dtype = DType::float32, .in = {block}, .out = {block}}, soon()));
           std::memcpy(grads.data(), block.data(), 4 * count);
           EXPECT_EQ(grads, ramp_sum(count, 2));
           engine.reach()->free(shared);
         }
       })) {
    EXPECT_EQ(status, 0);
  }
}

/// All of them say so, whatever memory their own choice would be for.
TEST(ChosenCollectives, DifferentChoicesForOneMemoryAreAMismatch) {
  for (const auto memory : {plan::Memory::ordinary, plan::Memory::symmetric}) {
    run_threads(2, [&](Engine& engine) {
      if (engine.rank() == Rank{0}) {
        OpChoices choices;
        (memory == plan::Memory::ordinary ? choices.ordinary : choices.symmetric) = plan::Choice{};
        expect_ok(engine.choose(Op::all_reduce, choices));
      }
      auto grads = ramp(1003, to_int(engine.rank()));
      const auto status = engine.run(
          {.op = Op::all_reduce, .dtype = DType::float32, .in = {bytes_of(grads)}, .out = {writable(grads)}}, soon());
      ASSERT_FALSE(status);
      EXPECT_EQ(status.error().code, Code::mismatch);
    });
  }
}

TEST(ChosenCollectives, NoOtherLibraryIsThere) {
  run_threads(2, [](Engine& engine) {
    const auto chosen = engine.choose(Op::all_reduce, plan::Choices::parse("own,1Mi:library").value());
    ASSERT_FALSE(chosen);
    EXPECT_EQ(chosen.error().code, Code::unsupported);
    EXPECT_EQ(engine.shape().text(), "local 2");
  });
}

TEST_P(PlannedCollectives, DifferentPlansAreAMismatch) {
  run_engines(GetParam(), 2, [](Engine& engine) {
    if (engine.rank() == Rank{1}) {
      expect_ok(engine.choose(Op::all_reduce, plan::Choice{}));
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
    expect_ok(engine.choose(Op::all_reduce, plan::Choice{.algorithm = plan::Algorithm::tree}));
    expect_ok(run());
    EXPECT_EQ(grads, ramp_sum(1003, 2));
  });
}

/// Blocks that do not lie one behind the other on one of the ranks: nobody runs the plan then.
TEST_P(PlannedCollectives, ByAPlanThatNotAllHave) {
  run_engines(GetParam(), 2, [](Engine& engine) {
    expect_ok(engine.choose(Op::reduce_scatter, plan::Choice{}));
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
