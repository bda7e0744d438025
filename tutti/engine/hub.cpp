#include "tutti/engine/hub.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tutti/memory/line.h"

namespace tutti::engine {
namespace {

using memory::kLine;

constexpr std::size_t kHeaderBytes = 2048;
constexpr std::size_t kBlockBytes = 2048;

constexpr std::size_t round_up(std::size_t value, std::size_t unit) { return (value + unit - 1) / unit * unit; }

constexpr const char* kBreaking = "the group is broken";

enum class Health : std::uint32_t { sound, breaking, broken };

}  // namespace

/// The first error that anybody reported.
struct Hub::Header {
  alignas(kLine) std::atomic<Health> health;
  Code code;
  std::int32_t rank;  // -1: nobody in particular
  std::uint32_t length;
  char message[1024];
  alignas(kLine) std::atomic<std::uint32_t> sleepers;  // that wait for all
};

/// What ranks write often lies in pairs of lines of its own: processors fetch two at a time.
struct Hub::RankBlock {
  memory::Bell bell;
  memory::Bell mail_bell;
  memory::LifeWord life;
  alignas(2 * kLine) std::atomic<std::uint64_t> steps;
  // Other ranks' memory. Nobody else looks while all is well: writing it must not wait for them.
  alignas(2 * kLine) std::atomic<std::uint32_t> inside;
  LonelyNotice notices[2];
  alignas(2 * kLine) Particulars particulars[2];
  memory::Cores cores;  // on which it may run
  // Followed by two tables of blocks, each three numbers per rank.
};

std::string Doing::text() const {
  if (whole != nullptr) {
    return whole->text();
  }
  const auto call = describe(card, sequence);
  return site.file == nullptr ? call : fmt::format("{} at {}:{}", call, site.file, site.line);
}

HubLayout HubLayout::for_ranks(int ranks) {
  const auto count = static_cast<std::size_t>(ranks);
  HubLayout layout{.ranks = ranks};
  layout.shelf_bytes = std::clamp<std::size_t>(std::bit_floor((std::size_t{1} << 20) / count), 16 << 10, 64 << 10);
  // Large enough to hide the cost of a meeting, small enough that all ranks' slots stay in cache (measured with 2, 4, 8
  // and 16 ranks); at least a line for each rank, since some operations divide a slot among them.
  const auto fair = std::clamp<std::size_t>(std::bit_floor((std::size_t{8} << 20) / count), 16 << 10, 256 << 10);
  layout.slot_bytes = std::max(fair, round_up(kLine * count, 4096));
  layout.mailbox_bytes =
      std::clamp<std::size_t>(std::bit_floor((std::size_t{16} << 20) / (count * count)), 256, 256 << 10);
  layout.link_bytes = layout.mailbox_bytes;
  return layout;
}

std::size_t HubLayout::rank_block(Rank rank) const {
  return kHeaderBytes +
         to_index(rank) *
             round_up(kBlockBytes + 6 * sizeof(std::uint64_t) * static_cast<std::size_t>(ranks), 2 * kLine);
}

std::size_t HubLayout::shelf(Rank rank, unsigned which) const {
  return round_up(rank_block(Rank{ranks}), 4096) + (kShelves * to_index(rank) + which) * shelf_bytes;
}

std::size_t HubLayout::slot(Rank rank, unsigned which) const {
  return shelf(Rank{ranks}, 0) + (kSlots * to_index(rank) + which) * slot_bytes;
}

std::size_t HubLayout::mailbox(Rank from, Rank to) const {
  const auto mailboxes = round_up(slot(Rank{ranks}, 0), 4096);
  const auto pair = to_index(from) * static_cast<std::size_t>(ranks) + to_index(to);
  return mailboxes + pair * round_up(sizeof(RingWords) + mailbox_bytes, kLine);
}

std::size_t HubLayout::link(Rank from, Rank to) const {
  const auto links = round_up(mailbox(Rank{ranks}, Rank{0}), 4096);
  const auto pair = to_index(from) * static_cast<std::size_t>(ranks) + to_index(to);
  return links + pair * round_up(sizeof(RingWords) + link_bytes, kLine);
}

std::size_t HubLayout::total_bytes() const { return round_up(link(Rank{ranks}, Rank{0}), 4096); }

Hub::Hub(std::byte* memory, HubLayout layout, Rank rank) : memory_(memory), layout_(layout), rank_(rank) {
  static_assert(sizeof(Header) <= kHeaderBytes && sizeof(RankBlock) <= kBlockBytes);
  for (int each = 0; each < layout.ranks; ++each) {
    blocks_.push_back(reinterpret_cast<RankBlock*>(memory_ + layout_.rank_block(Rank{each})));
    notices_.push_back(blocks_.back()->notices);
  }
  crowded_ = layout_.ranks > memory::Cores::allowed().count();
}

void Hub::tell_cores() { block(rank_).cores = memory::Cores::allowed(); }

void Hub::count_cores() {
  memory::Cores all;
  for (const auto* each : blocks_) {
    all |= each->cores;
  }
  crowded_ = waits_long_ || layout_.ranks > all.count();
}

Hub::Header& Hub::header() const { return *reinterpret_cast<Header*>(memory_); }

memory::LifeWord& Hub::life(Rank rank) const { return block(rank).life; }

memory::Bell& Hub::bell(Rank rank) const { return block(rank).bell; }

memory::Bell& Hub::mail_bell(Rank rank) const { return block(rank).mail_bell; }

ByteRing Hub::ring_at(std::size_t offset, std::size_t bytes) const {
  auto* at = memory_ + offset;
  return {reinterpret_cast<RingWords*>(at), at + sizeof(RingWords), bytes};
}

Particulars& Hub::particulars(Rank rank, std::uint64_t sequence) const { return block(rank).particulars[sequence % 2]; }

BlockTable Hub::table(Rank rank, std::uint64_t sequence) const {
  const auto ranks = static_cast<std::size_t>(layout_.ranks);
  auto* numbers = reinterpret_cast<std::uint64_t*>(memory_ + layout_.rank_block(rank) + kBlockBytes);
  numbers += 3 * ranks * (sequence % 2);
  return {
      .in_bytes = {numbers, ranks}, .in_places = {numbers + ranks, ranks}, .out_bytes = {numbers + 2 * ranks, ranks}};
}

/// After a store that others wait for. The last to come wakes those who sleep: whoever still sees one missing is not
/// the last, and that one will. Where ranks spin before they sleep, the order is not enforced: it would take as long as
/// a small operation, and a peer that falls asleep in just that instant looks up by itself soon.
template <class There>
void Hub::announce(There&& there) {
  if (is_crowded()) {
    memory::order_before_ringing();
  }
  for (int rank = 0; rank < layout_.ranks; ++rank) {
    if (!there(Rank{rank})) {
      return;
    }
  }
  for (int rank = 0; rank < layout_.ranks; ++rank) {
    if (Rank{rank} != rank_) {
      memory::ring_ordered(bell(Rank{rank}));
    }
  }
}

template <class There>
Status Hub::await(There&& there, const Doing& doing, Deadline deadline) {
  int next = 0;  // ranks below it have come; nobody goes back
  const auto all_here = [&] {
    while (next < layout_.ranks && there(Rank{next})) {
      ++next;
    }
    return next == layout_.ranks;
  };
  if (memory::spin_until(patience(), all_here)) {
    wake_sleepers();
    return {};
  }
  header().sleepers.fetch_add(1, std::memory_order_seq_cst);
  auto met = await_asleep(there, doing, deadline);
  header().sleepers.fetch_sub(1, std::memory_order_relaxed);
  wake_sleepers();
  return met;
}

void Hub::wake_sleepers() {
  if (header().sleepers.load(std::memory_order_relaxed) == 0) {
    return;
  }
  for (int rank = 0; rank < layout_.ranks; ++rank) {
    if (Rank{rank} != rank_) {
      memory::ring_ordered(bell(Rank{rank}));
    }
  }
}

void Hub::post(std::uint64_t sequence) {
  notice(rank_, sequence).sequence.store(sequence, std::memory_order_release);
  announce([&](Rank rank) { return notice(rank, sequence).sequence.load(std::memory_order_acquire) == sequence; });
}

Status Hub::await_notices(const Doing& doing, Deadline deadline) {
  const auto sequence = doing.sequence;
  const auto posted = [&](Rank rank) {
    return notice(rank, sequence).sequence.load(std::memory_order_acquire) == sequence;
  };
  auto met = await(posted, doing, deadline);
  // What this rank writes next, and nobody looks at any more: by then the lines are here.
  memory::fetch_to_write(&notice(rank_, sequence + 1));
  memory::fetch_to_write(&block(rank_).steps);
  return met;
}

std::uint64_t Hub::step() {
  ++steps_;
  block(rank_).steps.store(steps_, std::memory_order_release);
  announce([&](Rank rank) { return block(rank).steps.load(std::memory_order_acquire) >= steps_; });
  return steps_;
}

Status Hub::await_steps(std::uint64_t steps, const Doing& doing, Deadline deadline) {
  return await([&](Rank rank) { return block(rank).steps.load(std::memory_order_acquire) >= steps; }, doing, deadline);
}

std::optional<Error> Hub::lost(Rank peer, const std::string& doing) const {
  const auto state = memory::presence(life(peer));
  if (state != memory::Presence::died && state != memory::Presence::left) {
    return std::nullopt;
  }
  return Error{Code::peer_lost,
               fmt::format("{}: rank {} (pid {}) {}", doing, to_int(name_of(peer)), life(peer).pid.load(),
                           state == memory::Presence::died ? "died" : "left the group"),
               name_of(peer)};
}

Error Hub::late(const std::vector<Rank>& who, const std::string& doing) const {
  std::vector<std::string> names;
  for (const auto rank : who) {
    const bool came = memory::presence(life(rank)) != memory::Presence::absent;
    names.push_back(came ? fmt::format("rank {} (pid {})", to_int(name_of(rank)), life(rank).pid.load())
                         : fmt::format("rank {} (never joined the group)", to_int(name_of(rank))));
  }
  return {Code::timed_out, fmt::format("{}: the deadline passed; still missing: {}", doing, fmt::join(names, ", ")),
          who.empty() ? std::nullopt : std::optional(name_of(who.front()))};
}

Status Hub::await_asleep(const std::function<bool(Rank)>& there, const Doing& doing, Deadline deadline) {
  const auto missing = [&] {
    std::vector<Rank> ranks;
    for (int rank = 0; rank < layout_.ranks; ++rank) {
      if (!there(Rank{rank})) {
        ranks.push_back(Rank{rank});
      }
    }
    return ranks;
  };
  const auto all_here = [&] {
    for (int rank = 0; rank < layout_.ranks; ++rank) {
      if (!there(Rank{rank})) {
        return false;
      }
    }
    return true;
  };
  const auto give_up = [&] {
    const auto who = missing();
    return is_broken() ||
           std::any_of(who.begin(), who.end(), [&](Rank peer) { return lost(peer, doing.text()).has_value(); });
  };
  const memory::Patience asleep{.spins = 0, .yield_for = {}, .look_up = patience().look_up};
  if (memory::wait_until(bell(rank_), asleep, deadline, all_here, give_up)) {
    return {};
  }
  const auto who = missing();
  if (who.empty() && !is_broken()) {
    return {};  // the last one came after all
  }
  return give_up_on(who, doing);
}

Error Hub::give_up_on(const std::vector<Rank>& who, const Doing& doing) {
  std::optional<Error> gone;
  for (const auto peer : who) {
    gone = gone ? gone : lost(peer, doing.text());
  }
  // The reason that was there first is the one that everybody reports, unless it is still being written.
  const auto mine = gone ? *gone : late(who, doing.text());
  fail(mine);
  const auto first = *broken();
  return first.message == kBreaking ? mine : first;
}

// Either the one who enters sees that the group is broken, or the one who broke it sees that one is inside: both write,
// then read, in one order that all agree on.
bool Hub::enter() {
  block(rank_).inside.store(1, std::memory_order_seq_cst);
  if (header().health.load(std::memory_order_seq_cst) == Health::sound) {
    return true;
  }
  leave();
  return false;
}

void Hub::leave() { block(rank_).inside.store(0, std::memory_order_release); }

void Hub::await_left(std::size_t bytes) const {
  constexpr std::size_t kBytesPerMillisecond = 100'000;  // a slow machine, more ranks than cores
  const auto deadline = Deadline::after(std::chrono::milliseconds(200 + bytes / kBytesPerMillisecond));
  for (int rank = 0; rank < layout_.ranks; ++rank) {
    const auto& peer = block(Rank{rank});
    while (Rank{rank} != rank_ && peer.inside.load(std::memory_order_seq_cst) != 0 && !deadline.expired() &&
           memory::presence(peer.life) == memory::Presence::here) {
      memory::yield_core();
    }
  }
}

void Hub::fail(const Error& error) {
  auto& shared = header();
  auto sound = Health::sound;
  if (shared.health.compare_exchange_strong(sound, Health::breaking)) {
    shared.code = error.code;
    shared.rank = error.rank ? to_int(*error.rank) : -1;
    shared.length = static_cast<std::uint32_t>(std::min(error.message.size(), sizeof shared.message));
    std::memcpy(shared.message, error.message.data(), shared.length);
    shared.health.store(Health::broken, std::memory_order_release);
  }
  for (int rank = 0; rank < layout_.ranks; ++rank) {
    memory::ring(bell(Rank{rank}));
    memory::ring(mail_bell(Rank{rank}));
  }
}

bool Hub::is_broken() const { return header().health.load(std::memory_order_acquire) != Health::sound; }

std::optional<Error> Hub::broken() const {
  const auto& shared = header();
  const auto health = shared.health.load(std::memory_order_acquire);
  if (health == Health::sound) {
    return std::nullopt;
  }
  if (health == Health::breaking) {  // its reporter may have died in the middle: do not wait for the text
    return Error{Code::aborted, kBreaking};
  }
  return Error{shared.code, std::string(shared.message, shared.length),
               shared.rank < 0 ? std::nullopt : std::optional(Rank{shared.rank})};
}

}  // namespace tutti::engine
