#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tutti/base/deadline.h"
#include "tutti/base/error.h"
#include "tutti/base/rank.h"
#include "tutti/engine/byte_ring.h"
#include "tutti/engine/call.h"
#include "tutti/memory/cores.h"
#include "tutti/memory/presence.h"
#include "tutti/memory/wait.h"

namespace tutti::engine {

/// How a group's shared memory is divided. Pure numbers; the same on every rank.
struct HubLayout {
  static constexpr unsigned kShelves = 4;
  static constexpr unsigned kSlots = 3;

  int ranks = 1;
  std::size_t shelf_bytes = 0;    ///< room for a whole small input; each rank has four
  std::size_t slot_bytes = 0;     ///< room for a chunk of a large input; each rank has three
  std::size_t mailbox_bytes = 0;  ///< of the ring for messages of one ordered pair of ranks
  std::size_t link_bytes = 0;     ///< of the ring for steps of plans of one ordered pair

  /// Sizes that keep the whole in tens of megabytes up to some 200 ranks; beyond, pairs of ranks grow as the square.
  static HubLayout for_ranks(int ranks);

  std::size_t rank_block(Rank rank) const;  ///< offsets into the memory
  std::size_t shelf(Rank rank, unsigned which) const;
  std::size_t slot(Rank rank, unsigned which) const;
  std::size_t mailbox(Rank from, Rank to) const;
  std::size_t link(Rank from, Rank to) const;
  std::size_t total_bytes() const;
};

/// What a rank tells the others about its call: one cache line, so that a small operation is one line each way.
struct alignas(64) Notice {
  static constexpr std::size_t kInside = 16;
  static constexpr std::uint64_t kElsewhere = ~std::uint64_t{0};  ///< in memory that only its rank can reach
  static constexpr std::uint64_t kStaged = kElsewhere - 1;        ///< a copy is in `inside`, or too long, on the shelf

  std::atomic<std::uint64_t> sequence;  ///< written last
  Card card;
  /// Where peers find the input: a place, or one of the above. Of round_sums only whether; where ranks only agree, an
  /// amount.
  std::uint64_t in_place;
  std::uint64_t out_place;
  std::byte inside[kInside];
  std::uint32_t plan;  ///< the call's mark (see Marked), or its part's
  bool symmetric;      ///< of that, it would take what is for blocks in reach of others
  bool streams;        ///< it would rather use streaming stores; what it laid down already was
};
static_assert(sizeof(Notice) == 64);

/// In a pair of lines of its own: processors fetch two at a time.
struct alignas(128) LonelyNotice : Notice {};

/// What does not fit a notice and is seldom needed.
struct Particulars {
  double factor;
  std::uint32_t addends;                        ///< of round_sums
  bool has_sums;                                ///< accumulators behind them
  std::uint64_t places[kMostWholeAddends + 1];  ///< where peers find these
  std::uint32_t site_length;
  char site[228];
};

/// One number per rank for each of these, where a call's blocks are not plain.
struct BlockTable {
  std::span<std::uint64_t> in_bytes;
  std::span<std::uint64_t> in_places;
  std::span<std::uint64_t> out_bytes;
};

/// What an operation is called in an error.
struct Doing {
  Card card;
  std::uint64_t sequence = 0;
  CallSite site = {};
  const Doing* whole = nullptr;  ///< what it is a part of: that is named instead
  std::string text() const;
  std::uint64_t number() const { return whole == nullptr ? sequence : whole->sequence; }
};

/// Where the ranks of a group meet: their bells, marks of life, notices, shelves, slots and mailboxes, in memory that
/// all of them map. The memory must be zeroed before the first rank comes, and outlive this object.
///
/// One failure breaks the group: the first error that anybody reports is kept in the shared memory, everybody who waits
/// wakes up with it, and every later wait fails with it.
class Hub {
 public:
  Hub(std::byte* memory, HubLayout layout, Rank rank);

  Rank rank() const { return rank_; }
  int ranks() const { return layout_.ranks; }
  const HubLayout& layout() const { return layout_; }

  /// How errors call the ranks, where these are some of a larger group's; by rank.
  void name_ranks(std::vector<Rank> names) { names_ = std::move(names); }
  Rank name_of(Rank rank) const { return names_.empty() ? rank : names_[to_index(rank)]; }

  memory::LifeWord& life(Rank rank) const;
  memory::Bell& bell(Rank rank) const;       ///< of collectives
  memory::Bell& mail_bell(Rank rank) const;  ///< of messages: who waits for those is not woken by collectives
  ByteRing mailbox(Rank from, Rank to) const { return ring_at(layout_.mailbox(from, to), layout_.mailbox_bytes); }
  ByteRing link(Rank from, Rank to) const { return ring_at(layout_.link(from, to), layout_.link_bytes); }

  /// Of a rank's call with that number. Two of each are kept: a rank that writes those of call k + 2 has seen every
  /// notice of call k + 1, so nobody reads those of call k any more.
  Notice& notice(Rank rank, std::uint64_t sequence) const { return notices_[to_index(rank)][sequence % 2]; }
  Particulars& particulars(Rank rank, std::uint64_t sequence) const;
  BlockTable table(Rank rank, std::uint64_t sequence) const;
  std::byte* shelf(Rank rank, unsigned which) const { return memory_ + layout_.shelf(rank, which); }
  std::byte* slot(Rank rank, unsigned which) const { return memory_ + layout_.slot(rank, which); }

  /// Makes this rank's notice of that call visible. To be followed by await_notices.
  void post(std::uint64_t sequence);
  /// Waits until every rank has posted its notice of that call.
  Status await_notices(const Doing& doing, Deadline deadline);

  /// Says that this rank has taken one more step, and how many it has taken now. Steps are counted for the group's
  /// lifetime; every rank takes the same ones.
  std::uint64_t step();
  /// Waits until every rank has taken that many steps.
  Status await_steps(std::uint64_t steps, const Doing& doing, Deadline deadline);
  /// One step that all take together.
  Status meet(const Doing& doing, Deadline deadline) { return await_steps(step(), doing, deadline); }

  /// Around reading or writing what lies in other ranks' own memory: between the two, nobody else who fails goes back
  /// to its caller, who might use that memory for something else. False when the group is broken: then there is nothing
  /// to touch any more.
  bool enter();
  void leave();
  /// After a failure: waits until no other rank is between the two. For one that was stopped there, not longer than
  /// moving so many bytes could ever take.
  void await_left(std::size_t bytes) const;

  /// Breaks the group for everybody with this error, unless it is broken already. Any thread.
  void fail(const Error& error);

  /// The error that broke the group, when it is.
  std::optional<Error> broken() const;
  bool is_broken() const;

  /// Whether there are more ranks than cores. Until all ranks are known to be here, what a rank must think which may
  /// have to share its cores with all of them.
  bool is_crowded() const { return crowded_.load(std::memory_order_relaxed); }
  /// Ranks with cores of their own are slow to sleep: one that wakes late makes the next one fall asleep, and then
  /// nobody is on time any more. They yield meanwhile; and sleep where that shows that somebody computes on their core,
  /// mostly this rank itself, while its progress thread waits for others.
  memory::Patience patience() const {
    return is_crowded() ? memory::Patience::for_ranks(2, 1)
                        : memory::Patience{.yield_for = std::chrono::milliseconds(5),
                                           .longest_yield = std::chrono::microseconds(20)};
  }
  /// From now on ranks wait for more than each other, and let others have the core meanwhile, whether they are crowded
  /// or not. Before the first notice.
  void expect_long_waits() { crowded_ = waits_long_ = true; }
  /// On which this rank may run; before its first notice.
  void tell_cores();
  /// When all ranks have told: those that are bound to cores of their own need not fear each other.
  void count_cores();

  /// After a wait that was given up because of these ranks: breaks the group, for the reason that was there first.
  Error give_up_on(const std::vector<Rank>& who, const Doing& doing);

  /// The error for a peer that is gone, or nothing while it is there or has not come yet.
  std::optional<Error> lost(Rank peer, const std::string& doing) const;

 private:
  struct Header;
  struct RankBlock;

  Header& header() const;
  ByteRing ring_at(std::size_t offset, std::size_t bytes) const;
  RankBlock& block(Rank rank) const { return *blocks_[to_index(rank)]; }
  template <class There>
  void announce(There&& there);
  template <class There>
  Status await(There&& there, const Doing& doing, Deadline deadline);
  /// After a wait: two who came last at the same time may both have thought that the other would wake those who sleep.
  void wake_sleepers();
  Status await_asleep(const std::function<bool(Rank)>& there, const Doing& doing, Deadline deadline);
  Error late(const std::vector<Rank>& who, const std::string& doing) const;

  std::byte* memory_;
  HubLayout layout_;
  Rank rank_;
  std::atomic<bool> crowded_;
  bool waits_long_ = false;
  std::vector<RankBlock*> blocks_;
  std::vector<LonelyNotice*> notices_;
  std::vector<Rank> names_;
  std::uint64_t steps_ = 0;
};

}  // namespace tutti::engine
