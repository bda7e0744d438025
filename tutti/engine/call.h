#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/base/error.h"
#include "tutti/base/rank.h"
#include "tutti/kernels/dtype.h"
#include "tutti/kernels/reduce.h"

namespace tutti::engine {

enum class Op : std::uint8_t {
  barrier,
  all_reduce,
  reduce,
  broadcast,
  all_gather,
  reduce_scatter,
  all_to_all,
  gather,
  scatter,
};

std::string_view to_string(Op op);

using ConstBlock = std::span<const std::byte>;
using Block = std::span<std::byte>;

/// A collective as one rank calls it. Blocks are contiguous bytes that the caller keeps alive until the call is done.
///
///   op              in                   out
///   barrier         -                    -
///   all_reduce      one                  one, may be the same bytes
///   reduce          one                  one at the root
///   broadcast       one at the root      one at the others
///   all_gather      one                  one per rank, each as long as that rank's in
///   reduce_scatter  one per rank         one, as long as everybody's block for this rank
///   all_to_all      one per rank         one per rank
///   gather          one                  one per rank at the root
///   scatter         one per rank at root one
struct Call {
  Op op = Op::barrier;
  kernels::DType dtype = kernels::DType::uint8;
  kernels::ReduceOp reduce = kernels::ReduceOp::sum;
  Rank root{0};
  std::vector<ConstBlock> in = {};
  std::vector<Block> out = {};
};

/// What ranks compare before any byte reaches an output: what each of them thinks it is calling.
struct Card {
  std::uint64_t sequence = 0;
  Op op = Op::barrier;
  kernels::DType dtype = kernels::DType::uint8;
  kernels::ReduceOp reduce = kernels::ReduceOp::sum;
  Rank root{0};
  std::uint64_t bytes = 0;  ///< of the one block, where there is one
};

/// One rank's card with the lengths of its blocks for each peer, where it has such: zeros elsewhere.
struct CallView {
  Card card;
  std::span<const std::uint64_t> in_bytes;
  std::span<const std::uint64_t> out_bytes;
};

/// Whether the call has the blocks that its operation needs at this rank, and the operation exists for the type.
Status check_call(const Call& call, Rank rank, int ranks);

Card make_card(const Call& call, std::uint64_t sequence);

/// "all_reduce #17 (sum, float32, 1003 elements)"
std::string describe(const Card& card);

/// Whether all ranks call the same thing and their lengths fit each other. The error names two ranks that disagree and
/// what each of them calls. Pure: every rank that looks at the same cards comes to the same sentence.
Status check_agreement(std::span<const CallView> calls);

}  // namespace tutti::engine
