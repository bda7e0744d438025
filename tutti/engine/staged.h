#pragma once

#include <cstdint>

#include "tutti/base/deadline.h"
#include "tutti/base/error.h"
#include "tutti/engine/call.h"
#include "tutti/engine/hub.h"

namespace tutti::engine {

/// Collectives through the staging slots of a hub, in rounds: every rank copies a chunk of its input into its slot, all
/// meet, every rank takes what it needs from the slots. Two slots alternate, so one meeting per round is enough.
/// Sums are made in rank order: the bits do not depend on timing. One thread at a time.
class Staged {
 public:
  explicit Staged(Hub& hub) : hub_(hub) {}

  Status run(const Call& call, Deadline deadline);

 private:
  struct Round {
    std::size_t begin = 0;   ///< where this round's chunk starts in each block
    std::size_t length = 0;  ///< the longest chunk of one block
    unsigned slot = 0;
  };

  std::size_t chunk_bytes(Op op) const;
  std::size_t longest_block(std::uint64_t sequence, const Card& card) const;
  void stage(const Call& call, const Round& round) const;
  void collect(const Call& call, const Round& round) const;
  Status finish_all_reduce(const Call& call, const Round& round, const Card& card, Deadline deadline) const;
  void reduce_from_slots(const Call& call, const Round& round, std::size_t slot_offset, std::byte* out,
                         std::size_t bytes) const;
  Status check_published(std::uint64_t sequence) const;

  Hub& hub_;
  std::uint64_t sequence_ = 0;
  std::uint64_t rounds_ = 0;
};

}  // namespace tutti::engine
