#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
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
  round_sums,
};

inline constexpr std::string_view kOpNames[] = {"barrier",        "all_reduce", "reduce", "broadcast", "all_gather",
                                                "reduce_scatter", "all_to_all", "gather", "scatter",   "round_sums"};

/// So many of a rank's addends are added up as they are.
inline constexpr std::size_t kMostWholeAddends = 8;

constexpr std::string_view to_string(Op op) { return kOpNames[static_cast<std::size_t>(op)]; }

using ConstBlock = std::span<const std::byte>;
using Block = std::span<std::byte>;

/// The blocks of a call on one side. The usual one needs no memory of its own.
template <class BlockType>
class BlockList {
 public:
  BlockList() = default;
  BlockList(std::initializer_list<BlockType> blocks) { assign(blocks.begin(), blocks.end()); }
  BlockList(const std::vector<BlockType>& blocks) { assign(blocks.begin(), blocks.end()); }

  void push_back(BlockType block) {
    if (size_ == 0) {
      first_ = block;
    } else {
      if (size_ == 1) {
        many_ = {first_};
      }
      many_.push_back(block);
    }
    ++size_;
  }

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const BlockType* begin() const { return size_ > 1 ? many_.data() : &first_; }
  const BlockType* end() const { return begin() + size_; }
  const BlockType& operator[](std::size_t index) const { return begin()[index]; }

 private:
  template <class Iterator>
  void assign(Iterator from, Iterator to) {
    for (; from != to; ++from) {
      push_back(*from);
    }
  }

  BlockType first_;
  std::vector<BlockType> many_;
  std::size_t size_ = 0;
};

/// Where in the user's program a call was made. The text must outlive the call.
struct CallSite {
  const char* file = nullptr;
  std::uint32_t line = 0;
};

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
///   round_sums      up to eight, and     one, as long as each of the eight
///                   maybe accumulators
///
/// `round_sums` is what an all_reduce of reproducible sums under way comes to: the addends of all ranks, of which each
/// may have another number, and what their accumulators hold, are added, divided, and rounded once.
///
/// An output may be the same bytes as the input that this rank itself contributes to it; otherwise they lie apart.
struct Call {
  Op op = Op::barrier;
  kernels::DType dtype = kernels::DType::uint8;
  kernels::ReduceOp reduce = kernels::ReduceOp::sum;
  Rank root{0};
  BlockList<ConstBlock> in = {};
  BlockList<Block> out = {};
  double factor = 1.0;  ///< for premul_sum: what this rank's input is multiplied with
  /// Of round_sums: whether its last input are accumulators; and by what the sum is divided, the same on every rank.
  bool ends_with_sums = false;
  std::size_t divisor = 1;
  CallSite site = {};
};

/// Whether every rank has a block of its own for each other rank on that side.
constexpr bool in_per_rank(Op op) { return op == Op::reduce_scatter || op == Op::all_to_all || op == Op::scatter; }
constexpr bool out_per_rank(Op op) { return op == Op::all_gather || op == Op::all_to_all || op == Op::gather; }

/// What ranks compare before any byte reaches an output: what each of them thinks it is calling.
struct Card {
  Op op = Op::barrier;
  kernels::DType dtype = kernels::DType::uint8;
  kernels::ReduceOp reduce = kernels::ReduceOp::sum;
  bool plain = true;  ///< all blocks are equally long, and inputs lie one behind the other; or it is round_sums
  Rank root{0};
  std::uint64_t bytes = 0;  ///< of the one block, where there is one (of round_sums the output); else of each

  bool operator==(const Card&) const = default;
};

/// One rank's card with the lengths of its blocks for each peer, where it has such: zeros elsewhere.
struct CallView {
  Card card;
  std::span<const std::uint64_t> in_bytes;
  std::span<const std::uint64_t> out_bytes;
  std::string_view site = {};  ///< where the call was made, when that is known
  Rank rank{-1};               ///< whose it is, where that is not its place in the list
};

/// How many of the inputs of round_sums are addends.
inline std::size_t whole_addends(const Call& call) {
  return call.in.size() - (call.ends_with_sums && !call.in.empty() ? 1 : 0);
}

/// Whether the call has the blocks that its operation needs at this rank, and the operation exists for the type.
Status check_call(const Call& call, Rank rank, int ranks);

Card make_card(const Call& call);

/// How many bytes a rank may go through at most, for how long that can take.
std::size_t bytes_at_work(const Card& card);

/// What a rank's call has beside its card that others' must have, too: of round_sums the divisor, of any other the mark
/// of what was chosen to run it by (0: nothing was).
struct Marked {
  Rank rank{0};
  std::uint32_t mark = 0;
};

inline std::uint32_t mark_of_sums(const Call& call) { return static_cast<std::uint32_t>(call.divisor); }

/// What is wrong with calls of the same card whose marks differ. `doing`: what ranks do.
Error differing_marks(const std::string& doing, Op op, const Marked& first, const Marked& second);

/// "all_reduce #17 (sum, float32, 1003 elements)"
std::string describe(const Card& card, std::uint64_t sequence);

/// Whether all ranks call the same thing and their lengths fit each other. The error names two ranks that disagree and
/// what each of them calls. Pure: every rank that looks at the same cards comes to the same sentence.
Status check_agreement(std::span<const CallView> calls, std::uint64_t sequence);

}  // namespace tutti::engine
