#include "tests/chaos/random_calls.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace tutti::chaos {
namespace {

using engine::Op;
using kernels::DType;
using kernels::ReduceOp;

constexpr std::array kOps{Op::barrier,        Op::all_reduce, Op::reduce, Op::broadcast, Op::all_gather,
                          Op::reduce_scatter, Op::all_to_all, Op::gather, Op::scatter,   Op::round_sums};
constexpr std::array kTypes{DType::float32, DType::float64, DType::int32, DType::int64, DType::bfloat16, DType::uint8};
constexpr std::array kReduces{ReduceOp::sum, ReduceOp::min, ReduceOp::max};

/// What every element of a rank's block for another rank is.
int value(std::size_t from, std::size_t to) { return static_cast<int>(1 + from + 2 * to); }

std::array<std::byte, 8> element(DType dtype, int number) {
  std::array<std::byte, 8> bytes{};
  const auto put = [&](auto typed) { std::memcpy(bytes.data(), &typed, sizeof typed); };
  switch (dtype) {
    case DType::float64: put(static_cast<double>(number)); break;
    case DType::float32: put(static_cast<float>(number)); break;
    case DType::bfloat16: {  // small whole numbers are the upper half of a float
      const auto wide = static_cast<float>(number);
      std::uint32_t bits = 0;
      std::memcpy(&bits, &wide, sizeof bits);
      put(static_cast<std::uint16_t>(bits >> 16));
      break;
    }
    case DType::int64: put(static_cast<std::int64_t>(number)); break;
    case DType::int32: put(static_cast<std::int32_t>(number)); break;
    default: put(static_cast<std::uint8_t>(number)); break;
  }
  return bytes;
}

void fill_block(engine::Block block, DType dtype, int number) {
  const auto one = element(dtype, number);
  const auto width = kernels::size_of(dtype);
  for (std::size_t at = 0; at < block.size(); at += width) {
    std::memcpy(block.data() + at, one.data(), width);
  }
}

bool holds(engine::Block block, DType dtype, int number) {
  const auto one = element(dtype, number);
  const auto width = kernels::size_of(dtype);
  for (std::size_t at = 0; at < block.size(); at += width) {
    if (std::memcmp(block.data() + at, one.data(), width) != 0) {
      return false;
    }
  }
  return true;
}

bool is_rooted(Op op) { return op == Op::reduce || op == Op::broadcast || op == Op::gather || op == Op::scatter; }

/// How many addends a rank has in round_sums.
std::size_t addends_of(std::size_t rank) { return (rank + 1) % 3; }

std::size_t blocks_in(const Draw& draw, const engine::Engine& engine) {
  const bool root = engine.rank() == draw.root;
  switch (draw.op) {
    case Op::barrier: return 0;
    case Op::broadcast: return root ? 1 : 0;
    case Op::scatter: return root ? static_cast<std::size_t>(engine.ranks()) : 0;
    case Op::round_sums: return addends_of(to_index(engine.rank()));
    default: return engine::in_per_rank(draw.op) ? static_cast<std::size_t>(engine.ranks()) : 1;
  }
}

std::size_t blocks_out(const Draw& draw, const engine::Engine& engine) {
  const bool root = engine.rank() == draw.root;
  switch (draw.op) {
    case Op::barrier: return 0;
    case Op::broadcast: return root ? 0 : 1;
    case Op::reduce: return root ? 1 : 0;
    case Op::gather: return root ? static_cast<std::size_t>(engine.ranks()) : 0;
    default: return engine::out_per_rank(draw.op) ? static_cast<std::size_t>(engine.ranks()) : 1;
  }
}

/// As the operation can be: sums under way are of floats, and there is one way to add them.
Draw settled(Draw drawn) {
  if (drawn.op == Op::round_sums) {
    drawn.dtype = drawn.dtype == DType::bfloat16 || drawn.dtype == DType::float64 ? drawn.dtype : DType::float32;
    drawn.reduce = ReduceOp::reproducible_avg;
  } else if (kernels::is_reproducible(drawn.reduce)) {
    drawn.reduce = ReduceOp::sum;
  }
  return drawn;
}

}  // namespace

Buffer::Buffer(engine::Engine& engine, std::size_t bytes, bool symmetric)
    : reach_(symmetric ? engine.reach() : nullptr), private_(symmetric ? 0 : bytes), bytes_(bytes) {
  data_ = reach_ ? reach_->allocate(bytes).value() : private_.data();
}

Buffer::~Buffer() {
  if (reach_) {
    reach_->free(data_);
  }
}

Draw draw(std::mt19937& random, int ranks, std::size_t most_bytes) {
  auto drawn = settled({.op = kOps[random() % kOps.size()],
                        .dtype = kTypes[random() % kTypes.size()],
                        .reduce = kReduces[random() % kReduces.size()],
                        .root = Rank{0},
                        .count = 0,
                        .symmetric = random() % 2 == 0});
  drawn.root = Rank{is_rooted(drawn.op) ? static_cast<std::int32_t>(random() % static_cast<unsigned>(ranks)) : 0};
  // As many small ones as large ones: sizes are drawn by their magnitude.
  const auto most =
      std::max<std::size_t>(most_bytes / kernels::size_of(drawn.dtype) / static_cast<std::size_t>(ranks), 1);
  const auto magnitude = random() % 24;
  drawn.count = std::min<std::size_t>(random() % (std::size_t{1} << magnitude), most);
  return drawn;
}

RandomCall::RandomCall(engine::Engine& engine, const Draw& drawn)
    : draw_(settled(drawn)),
      in_(engine, blocks_in(draw_, engine) * draw_.count * kernels::size_of(draw_.dtype), draw_.symmetric),
      out_(engine, blocks_out(draw_, engine) * draw_.count * kernels::size_of(draw_.dtype), draw_.symmetric) {
  const auto bytes = draw_.count * kernels::size_of(draw_.dtype);
  call_.op = draw_.op;
  call_.dtype = draw_.dtype;
  call_.reduce = draw_.reduce;
  call_.root = draw_.root;
  for (std::size_t i = 0; i < blocks_in(draw_, engine); ++i) {
    const auto block = in_.block().subspan(i * bytes, bytes);
    fill_block(block, draw_.dtype, value(to_index(engine.rank()), i));
    call_.in.push_back(block);
  }
  for (std::size_t i = 0; i < blocks_out(draw_, engine); ++i) {
    call_.out.push_back(out_.block().subspan(i * bytes, bytes));
  }
}

/// What an output block must hold.
int RandomCall::expected(const engine::Engine& engine, std::size_t block) const {
  const auto ranks = static_cast<std::size_t>(engine.ranks());
  const auto mine = to_index(engine.rank());
  const auto reduced = [&](std::size_t to) {
    int result = value(0, to);
    for (std::size_t from = 1; from < ranks; ++from) {
      const int next = value(from, to);
      result = draw_.reduce == ReduceOp::sum   ? result + next
               : draw_.reduce == ReduceOp::min ? std::min(result, next)
                                               : std::max(result, next);
    }
    return result;
  };
  const auto all_addends = [&] {
    int sum = 0;
    for (std::size_t from = 0; from < ranks; ++from) {
      for (std::size_t i = 0; i < addends_of(from); ++i) {
        sum += value(from, i);
      }
    }
    return sum;
  };
  switch (draw_.op) {
    case Op::round_sums: return all_addends();
    case Op::all_reduce:
    case Op::reduce: return reduced(0);
    case Op::reduce_scatter: return reduced(mine);
    case Op::broadcast: return value(to_index(draw_.root), 0);
    case Op::scatter: return value(to_index(draw_.root), mine);
    case Op::all_to_all: return value(block, mine);
    default: return value(block, 0);
  }
}

bool RandomCall::right(const engine::Engine& engine) const {
  for (std::size_t i = 0; i < call_.out.size(); ++i) {
    if (!holds(call_.out[i], draw_.dtype, expected(engine, i))) {
      return false;
    }
  }
  return true;
}

}  // namespace tutti::chaos
