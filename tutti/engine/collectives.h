#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include "tutti/base/deadline.h"
#include "tutti/base/error.h"
#include "tutti/engine/call.h"
#include "tutti/engine/hub.h"
#include "tutti/engine/planned.h"
#include "tutti/engine/reach.h"
#include "tutti/engine/ring_links.h"
#include "tutti/engine/store_trial.h"
#include "tutti/kernels/reproducible.h"

namespace tutti::engine {

/// From how many bytes on another way is taken.
struct Thresholds {
  /// A rank's whole input up to this size is copied where all can see it, along with the notice.
  std::size_t one_shot = 8192;
  /// The same when peers could also reach it where it is.
  std::size_t one_shot_reachable = 2048;

  /// `crowded`: there are more ranks than cores.
  static Thresholds for_ranks(int ranks, bool crowded);
};

/// How an all-reduce is divided: every rank's slice begins at a cache line.
struct Slices {
  std::size_t bytes = 0;  ///< of the whole
  std::size_t each = 0;

  Slices(std::size_t total, std::size_t ranks);
  std::size_t begin(std::size_t rank) const { return rank * each < bytes ? rank * each : bytes; }
  std::size_t length(std::size_t rank) const { return begin(rank + 1) - begin(rank); }
};

/// Collectives of ranks that share memory. Every rank posts a notice of its call; when all are there, they are
/// compared, and one of three ways is taken, the same on every rank:
///   one shot  small: inputs came along with the notices, everybody takes what it needs.      (one_shot.cpp)
///   direct    inputs lie where peers can reach them: read, and for sums written, in place.    (direct.cpp)
///   staged    through slots that stay in cache, chunk by chunk, the next one under way.       (staged.cpp)
/// Sums are made in rank order: the bits do not depend on timing. One thread at a time.
///
/// What makes it quick is that lines of memory seldom change hands. A core that writes a line which another one has
/// read waits for it several times as long as one that reads it; so whoever read a line last is the next to write it:
/// two ranks swap their shelves and slots from one use to the next, and a sum goes back to where its addend came from.
class Collectives {
 public:
  Collectives(Hub& hub, const Reach& reach);

  Status run(const Call& call, Deadline deadline);

  /// What a rank is to have of round_sums instead of the result: of `length` bytes of it from `begin` on what all ranks
  /// have, as accumulators; or as addends, `addends` of them, those that there are not as zeros. Addends lie by parts
  /// of so many bytes, so that each part of all of them is one block.
  struct OnlySums {
    std::size_t begin = 0;
    std::size_t length = 0;
    std::byte* to = nullptr;
    std::size_t addends = 0;
    std::size_t part = 0;

    void take(kernels::DType dtype, const kernels::SumParts& summands) const;
  };

  /// The same for a part of an operation of more ranks than these, which is what errors name. `mark`: what ranks
  /// compare beside the call; not 0.
  struct Part {
    const Doing& whole;
    std::uint32_t mark;
    const OnlySums* only = nullptr;
    std::uint64_t amount = 0;  ///< of something, for `agree`
  };
  Status run_part(const Call& call, const Part& part, Deadline deadline);

  struct Agreed {
    bool even = true;          ///< all blocks are equally long
    std::uint64_t amount = 0;  ///< of all ranks
  };
  /// Only compares what ranks call, and the mark.
  Result<Agreed> agree(const Card& card, const Part& part, Deadline deadline);

  /// Of round_sums, how many addends this rank has, which all can read where they lie; very many, where that is not so,
  /// or it has accumulators, too.
  std::uint64_t addends_in_reach(const Call& call) const;

  /// Has an operation run by a plan over links, or in another of the ways above than it would be.
  Status choose(Op op, const OpChoices& choices);

  /// By rank: what plans sent there.
  const std::vector<Links::Sent>& sent() const { return links_.sent(); }

 private:
  /// One call on its way, after its notice was posted.
  struct Running {
    const Call& call;
    Doing doing;
    Deadline deadline;

    const Card& card() const { return doing.card; }
    std::uint64_t sequence() const { return doing.sequence; }
  };

  /// A chunk of a large operation.
  struct Round {
    std::size_t begin = 0;   ///< where it starts in each block
    std::size_t length = 0;  ///< the longest chunk of one block
    unsigned slot = 0;
    bool swapped = false;  ///< what is from one rank for another lies where the other's for the one would
  };

  Status run_checked(const Call& call, Deadline deadline);
  Status run_noticed(const Running& running);
  void set_thresholds();

  // collectives.cpp: notices
  void write_notice(const Running& running);
  void choose_way(const Running& running);
  bool would_stage(std::size_t total) const;
  void write_table(const Running& running) const;
  Status check_notices(const Running& running);
  Status check_marks(const Running& running) const;
  Status explain_mismatch(const Running& running);
  Status name_sites(const Running& running, std::vector<CallView>& views);
  bool all_chose_alike(const Running& running) const;
  bool all_staged(const Running& running) const;
  bool all_reachable(const Running& running) const;
  std::size_t in_bytes(const Running& running, Rank owner, Rank taker) const;
  std::size_t longest_block(const Running& running) const;
  kernels::Reduction reduction(const Running& running);

  // one_shot.cpp
  void stage_small(const Running& running, std::size_t total);
  void finish_one_shot(const Running& running);
  void take_small(const Running& running);
  std::byte* shelf_of(const Running& running, Rank owner) const;
  const std::byte* staged_block(const Running& running, Rank owner, Rank taker) const;

  // direct.cpp
  Status run_direct(const Running& running);
  Status move_directly(const Running& running);
  Status direct_all_reduce(const Running& running);
  Status direct_reduce(const Running& running);
  Status direct_reduce_scatter(const Running& running);
  Status direct_copy(const Running& running, Rank from, Block to) const;
  Result<std::byte*> peer_input(const Running& running, Rank owner, Rank taker) const;

  // staged.cpp
  Status run_staged(const Running& running);
  Status run_rounds(const Running& running);
  Status staged_all_reduce(const Running& running);
  void add_slice(const Running& running, std::size_t chunk_begin, const Slices& slices, unsigned slot);
  unsigned sum_slot(std::size_t chunk) const;
  std::size_t chunk_bytes(const Running& running) const;
  std::byte* slot_piece(const Running& running, const Round& round, Rank owner, Rank taker) const;
  void stage(const Running& running, const Round& round) const;
  void collect(const Running& running, const Round& round);

  // round_sums.cpp
  void write_summands(const Running& running);
  Status direct_round_sums(const Running& running);
  Status staged_round_sums(const Running& running);
  void lay_sums_down(const Running& running, std::size_t begin, std::size_t length, std::byte* to) const;
  void take_sums(const Running& running, std::size_t begin, std::size_t length,
                 std::vector<const std::byte*>& sums) const;

  /// This rank's own block for that rank, where it is. Of those that have such.
  const std::byte* own_input(const Running& running, Rank taker) const;
  /// To where it ends. What is too much for any cache goes past them: it would be read from memory first otherwise.
  void put(const Running& running, Block to, const std::byte* from) const;
  /// To where a peer will read it.
  void lay_down(std::byte* to, const std::byte* from, std::size_t bytes) const;

  Rank me() const { return hub_.rank(); }
  std::size_t ranks() const { return static_cast<std::size_t>(hub_.ranks()); }

  Hub& hub_;
  const Reach& reach_;
  Planned planned_;
  RingLinks links_;
  Thresholds thresholds_;
  std::uint64_t sequence_ = 0;
  // Counted alike by all ranks.
  std::uint64_t shelf_uses_ = 0;
  std::array<std::uint64_t, HubLayout::kSlots> slot_uses_{};
  StoreTrial trial_;
  // In this operation:
  bool streams_ = false;
  std::uint32_t plan_ = 0;                // the mark of what was chosen
  const plan::Choice* choice_ = nullptr;  // of that, what this rank would run it by
  const OnlySums* only_ = nullptr;        // all that this rank is to have
  std::size_t chunk_ = 0;                 // bytes of a slot to be used
  std::uint64_t spent_ = 0;               // ticks on a small one before the notices met, or 0
  // Kept from call to call, so that none has to ask for memory.
  std::vector<const std::byte*> sources_;
  std::vector<std::byte*> outs_;
  std::vector<double> factors_;
};

/// Nothing is copied from nowhere: an empty block may have no address.
inline void copy_bytes(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (bytes != 0) {
    std::memmove(to, from, bytes);
  }
}

}  // namespace tutti::engine
