#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tutti/base/deadline.h"
#include "tutti/base/error.h"
#include "tutti/base/rank.h"
#include "tutti/engine/call.h"
#include "tutti/memory/presence.h"
#include "tutti/memory/wait.h"

namespace tutti::engine {

/// How a group's shared memory is divided. Pure numbers; the same on every rank.
struct HubLayout {
  int ranks = 1;
  std::size_t slot_bytes = 0;     ///< of one staging slot; each rank has two
  std::size_t mailbox_bytes = 0;  ///< of the ring for one ordered pair of ranks

  /// Sizes that keep the whole in tens of megabytes up to some 200 ranks; beyond, pairs of ranks grow as the square.
  static HubLayout for_ranks(int ranks);

  std::size_t rank_block(Rank rank) const;  ///< offsets into the memory
  std::size_t slot(Rank rank, unsigned which) const;
  std::size_t mailbox(Rank from, Rank to) const;
  std::size_t total_bytes() const;
};

/// A ring of bytes from one rank to another: one writes and moves `head`, one reads and moves `tail`.
struct MailboxRing {
  alignas(64) std::atomic<std::uint64_t> head{0};
  alignas(64) std::atomic<std::uint64_t> tail{0};
};

/// Where the ranks of a group meet: their bells, marks of life, cards, staging slots and mailboxes, in memory that all
/// of them map. The memory must be zeroed before the first rank comes, and outlive this object.
///
/// One failure breaks the group: the first error that anybody reports is kept in the shared memory, everybody who waits
/// wakes up with it, and every later wait fails with it.
class Hub {
 public:
  Hub(std::byte* memory, HubLayout layout, Rank rank);

  Rank rank() const { return rank_; }
  int ranks() const { return layout_.ranks; }
  const HubLayout& layout() const { return layout_; }

  memory::LifeWord& life(Rank rank) const;
  memory::Bell& bell(Rank rank) const;       ///< of collectives
  memory::Bell& mail_bell(Rank rank) const;  ///< of messages: who waits for those is not woken by collectives
  std::byte* slot(Rank rank, unsigned which) const { return memory_ + layout_.slot(rank, which); }
  MailboxRing& ring(Rank from, Rank to) const;
  std::byte* ring_bytes(Rank from, Rank to) const { return memory_ + layout_.mailbox(from, to) + sizeof(MailboxRing); }

  /// Writes this rank's card and lengths where peers read them after the next barrier. Two are kept, so that a quick
  /// rank's next call does not overwrite what a slow one still reads.
  void publish(const Card& card, const Call& call);
  CallView published(Rank rank, std::uint64_t sequence) const;

  /// Waits until every rank has come here as often as this one. One thread at a time. `doing` names the operation in
  /// the error, which says who is missing and why: died, left, or not come by the deadline.
  Status barrier(const Card& doing, Deadline deadline);

  /// Breaks the group for everybody with this error, unless it is broken already. Any thread.
  void fail(const Error& error);

  /// The error that broke the group, when it is.
  std::optional<Error> broken() const;

  const memory::Patience& patience() const { return patience_; }

  /// The error for a peer that is gone, or nothing while it is there or has not come yet.
  std::optional<Error> lost(Rank peer, const std::string& doing) const;

 private:
  struct Header;
  struct RankBlock;

  Header& header() const;
  RankBlock& block(Rank rank) const;
  std::uint64_t* lengths(Rank rank, std::uint64_t sequence, bool out) const;
  std::vector<Rank> missing(std::uint64_t wanted) const;
  Error late(const std::vector<Rank>& who, const std::string& doing) const;

  std::byte* memory_;
  HubLayout layout_;
  Rank rank_;
  memory::Patience patience_;
  std::uint64_t arrivals_ = 0;
};

}  // namespace tutti::engine
