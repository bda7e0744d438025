#include "tutti/engine/call.h"

#include <array>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::engine {
namespace {

using kernels::DType;
using kernels::ReduceOp;
using ::testing::HasSubstr;

std::array<std::byte, 64> buffer{};

ConstBlock in(std::size_t bytes) { return ConstBlock(buffer).first(bytes); }
Block out(std::size_t bytes) { return Block(buffer).first(bytes); }

std::string complaint(const Call& call, int rank = 0, int ranks = 3) {
  const auto status = check_call(call, Rank{rank}, ranks);
  return status.ok() ? "no complaint" : status.error().message;
}

TEST(CheckCall, EveryOperationHasItsBlocks) {
  const std::vector<ConstBlock> ins{in(4), in(4), in(4)};
  const std::vector<Block> outs{out(4), out(4), out(4)};
  const auto fine = [](const Call& call, int rank = 0) { EXPECT_EQ(complaint(call, rank), "no complaint"); };
  fine({.op = Op::barrier});
  fine({.op = Op::all_reduce, .in = {in(4)}, .out = {out(4)}});
  fine({.op = Op::reduce, .root = Rank{1}, .in = {in(4)}});
  fine({.op = Op::reduce, .root = Rank{1}, .in = {in(4)}, .out = {out(4)}}, 1);
  fine({.op = Op::broadcast, .root = Rank{1}, .out = {out(4)}});
  fine({.op = Op::broadcast, .root = Rank{1}, .in = {in(4)}}, 1);
  fine({.op = Op::all_gather, .in = {in(4)}, .out = outs});
  fine({.op = Op::reduce_scatter, .in = ins, .out = {out(4)}});
  fine({.op = Op::all_to_all, .in = ins, .out = outs});
  fine({.op = Op::gather, .root = Rank{2}, .in = {in(4)}});
  fine({.op = Op::gather, .root = Rank{2}, .in = {in(4)}, .out = outs}, 2);
  fine({.op = Op::scatter, .root = Rank{2}, .out = {out(4)}});
  fine({.op = Op::scatter, .root = Rank{2}, .in = ins, .out = {out(4)}}, 2);
}

TEST(CheckCall, SaysWhatIsWrong) {
  EXPECT_THAT(complaint({.op = Op::all_reduce, .in = {in(4)}}), HasSubstr("1 inputs and 0 outputs given"));
  EXPECT_THAT(complaint({.op = Op::all_gather, .in = {in(4)}, .out = {out(4)}}),
              HasSubstr("rank 0 of 3 needs 1 and 3"));
  EXPECT_THAT(complaint({.op = Op::broadcast, .root = Rank{3}, .out = {out(4)}}), HasSubstr("root 3 is not a rank"));
  EXPECT_THAT(complaint({.op = Op::broadcast, .root = Rank{-1}, .out = {out(4)}}), HasSubstr("root -1"));
  EXPECT_THAT(complaint({.op = Op::all_reduce, .dtype = DType::float32, .in = {in(6)}, .out = {out(6)}}),
              HasSubstr("no whole number of float32"));
  EXPECT_THAT(complaint({.op = Op::all_reduce, .in = {in(4)}, .out = {out(8)}}), HasSubstr("different lengths"));
  EXPECT_THAT(
      complaint({.op = Op::all_reduce, .dtype = DType::int8, .reduce = ReduceOp::avg, .in = {in(4)}, .out = {out(4)}}),
      HasSubstr("avg of int8"));
}

TEST(Describe, ReadsLikeACall) {
  EXPECT_EQ(describe(make_card({.op = Op::all_reduce, .dtype = DType::float32, .in = {in(12)}, .out = {out(12)}}), 17),
            "all_reduce #17 (sum, float32, 3 elements)");
  EXPECT_EQ(describe(make_card({.op = Op::broadcast, .dtype = DType::int64, .root = Rank{2}, .out = {out(16)}}), 3),
            "broadcast #3 (int64, 2 elements, root 2)");
  EXPECT_EQ(describe(make_card({.op = Op::barrier}), 1), "barrier #1");
}

/// Cards of three ranks with given lengths for each peer.
struct World {
  std::vector<Card> cards = std::vector<Card>(3);
  std::vector<std::vector<std::uint64_t>> ins{{0, 0, 0}, {0, 0, 0}, {0, 0, 0}};
  std::vector<std::vector<std::uint64_t>> outs{{0, 0, 0}, {0, 0, 0}, {0, 0, 0}};

  explicit World(Op op, Rank root = Rank{0}) {
    for (auto& card : cards) {
      card.op = op;
      card.root = root;
    }
  }
  std::string verdict() const {
    std::vector<CallView> views;
    for (std::size_t rank = 0; rank < 3; ++rank) {
      views.push_back({cards[rank], ins[rank], outs[rank]});
    }
    const auto status = check_agreement(views, 0);
    return status.ok() ? "agreed" : status.error().message;
  }
};

TEST(Agreement, NamesBothRanksAndBothCalls) {
  World world(Op::all_reduce);
  EXPECT_EQ(world.verdict(), "agreed");
  world.cards[2].op = Op::barrier;
  EXPECT_EQ(
      world.verdict(),
      "ranks call different things: rank 0 calls all_reduce #0 (sum, uint8, 0 elements), rank 2 calls barrier #0");
}

TEST(Agreement, SaysWhereTheCallsWereMade) {
  const Card sum{.op = Op::all_reduce};
  const Card stop{.op = Op::barrier};
  const std::vector<CallView> views{{sum, {}, {}, "train.cpp:17"}, {stop, {}, {}, "train.cpp:99"}};
  EXPECT_EQ(check_agreement(views, 3).error().message,
            "ranks call different things: rank 0 calls all_reduce #3 (sum, uint8, 0 elements) at train.cpp:17, rank 1 "
            "calls barrier #3 at train.cpp:99");
}

TEST(MakeCard, KnowsWhenBlocksArePlain) {
  const std::vector<ConstBlock> side_by_side{in(12).subspan(0, 4), in(12).subspan(4, 4), in(12).subspan(8, 4)};
  const std::vector<ConstBlock> apart{in(12).subspan(0, 4), in(12).subspan(8, 4), in(12).subspan(4, 4)};
  EXPECT_TRUE(make_card({.op = Op::reduce_scatter, .in = side_by_side, .out = {out(4)}}).plain);
  EXPECT_FALSE(make_card({.op = Op::reduce_scatter, .in = apart, .out = {out(4)}}).plain);
  EXPECT_FALSE(make_card({.op = Op::reduce_scatter, .in = side_by_side, .out = {out(8)}}).plain);
  EXPECT_TRUE(make_card({.op = Op::all_gather, .in = {in(4)}, .out = {out(4), out(4), out(4)}}).plain);
  EXPECT_FALSE(make_card({.op = Op::all_gather, .in = {in(4)}, .out = {out(4), out(8), out(4)}}).plain);
}

TEST(Agreement, ComparesEveryField) {
  for (int field = 0; field < 5; ++field) {
    World world(Op::reduce);
    auto& card = world.cards[1];
    switch (field) {
      case 0: card.op = Op::gather; break;
      case 1: card.dtype = DType::int8; break;
      case 2: card.reduce = ReduceOp::max; break;
      case 3: card.root = Rank{1}; break;
      default: card.bytes = 5; break;
    }
    EXPECT_THAT(world.verdict(), HasSubstr("rank 1 calls")) << field;
  }
}

TEST(Agreement, LengthsFitPairwise) {
  World gather(Op::all_gather);
  gather.cards[1].bytes = 5;
  for (auto& outs : gather.outs) {
    outs = {0, 5, 0};
  }
  EXPECT_EQ(gather.verdict(), "agreed");
  gather.outs[2][1] = 6;
  EXPECT_THAT(gather.verdict(), HasSubstr("rank 1 has 5 bytes for rank 2, which expects 6"));

  World to_root(Op::gather, Rank{2});
  to_root.cards[0].bytes = 3;
  EXPECT_THAT(to_root.verdict(), HasSubstr("rank 0 has 3 bytes for rank 2, which expects 0"));
  to_root.outs[2] = {3, 0, 0};
  EXPECT_EQ(to_root.verdict(), "agreed");

  World from_root(Op::scatter, Rank{1});
  from_root.ins[1] = {1, 2, 3};
  EXPECT_THAT(from_root.verdict(), HasSubstr("rank 1 has 1 bytes for rank 0"));

  World scatter(Op::reduce_scatter);
  scatter.ins[0] = {0, 4, 0};
  EXPECT_THAT(scatter.verdict(), HasSubstr("rank 0 has 4 bytes for rank 1, which expects 0"));

  World exchange(Op::all_to_all);
  exchange.ins[0][1] = 9;
  EXPECT_THAT(exchange.verdict(), HasSubstr("rank 0 has 9 bytes for rank 1, which expects 0"));
  exchange.outs[1][0] = 9;
  EXPECT_EQ(exchange.verdict(), "agreed");
}

}  // namespace
}  // namespace tutti::engine
