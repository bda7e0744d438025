#include "tutti/engine/hub.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tutti::engine {
namespace {

constexpr std::size_t kLine = 64;

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
};

struct Hub::RankBlock {
  memory::Bell bell;
  memory::Bell mail_bell;
  memory::LifeWord life;
  alignas(kLine) std::atomic<std::uint64_t> arrivals;
  alignas(kLine) Card cards[2];
  // Followed by the lengths of its blocks: two calls, in and out, one number per rank.
};

HubLayout HubLayout::for_ranks(int ranks) {
  const auto count = static_cast<std::size_t>(ranks);
  HubLayout layout{.ranks = ranks};
  // Large enough to hide the cost of a barrier, small enough that a few ranks' slots stay in cache; at least a line for
  // each rank, since some operations divide a slot among them.
  layout.slot_bytes = round_up(std::clamp<std::size_t>((std::size_t{8} << 20) / count, 16 << 10, 1 << 20), kLine);
  layout.slot_bytes = std::max(layout.slot_bytes, kLine * count);
  layout.mailbox_bytes =
      std::clamp<std::size_t>(std::bit_floor((std::size_t{16} << 20) / (count * count)), 256, 256 << 10);
  return layout;
}

std::size_t HubLayout::rank_block(Rank rank) const {
  return round_up(2048, kLine) +
         to_index(rank) * round_up(1024 + 4 * sizeof(std::uint64_t) * static_cast<std::size_t>(ranks), kLine);
}

std::size_t HubLayout::slot(Rank rank, unsigned which) const {
  const auto slots = round_up(rank_block(Rank{ranks}), 4096);
  return slots + (2 * to_index(rank) + which) * slot_bytes;
}

std::size_t HubLayout::mailbox(Rank from, Rank to) const {
  const auto mailboxes = round_up(slot(Rank{ranks}, 0), 4096);
  const auto pair = to_index(from) * static_cast<std::size_t>(ranks) + to_index(to);
  return mailboxes + pair * round_up(sizeof(MailboxRing) + mailbox_bytes, kLine);
}

std::size_t HubLayout::total_bytes() const { return round_up(mailbox(Rank{ranks}, Rank{0}), 4096); }

Hub::Hub(std::byte* memory, HubLayout layout, Rank rank)
    : memory_(memory), layout_(layout), rank_(rank), patience_(memory::Patience::for_ranks(layout.ranks)) {
  static_assert(sizeof(Header) <= 2048 && sizeof(RankBlock) <= 1024);
}

Hub::Header& Hub::header() const { return *reinterpret_cast<Header*>(memory_); }

Hub::RankBlock& Hub::block(Rank rank) const {
  return *reinterpret_cast<RankBlock*>(memory_ + layout_.rank_block(rank));
}

memory::LifeWord& Hub::life(Rank rank) const { return block(rank).life; }

memory::Bell& Hub::bell(Rank rank) const { return block(rank).bell; }

memory::Bell& Hub::mail_bell(Rank rank) const { return block(rank).mail_bell; }

MailboxRing& Hub::ring(Rank from, Rank to) const {
  return *reinterpret_cast<MailboxRing*>(memory_ + layout_.mailbox(from, to));
}

std::uint64_t* Hub::lengths(Rank rank, std::uint64_t sequence, bool out) const {
  auto* all = reinterpret_cast<std::uint64_t*>(memory_ + layout_.rank_block(rank) + 1024);
  return all + (2 * (sequence % 2) + (out ? 1 : 0)) * static_cast<std::size_t>(layout_.ranks);
}

void Hub::publish(const Card& card, const Call& call) {
  block(rank_).cards[card.sequence % 2] = card;
  const auto ranks = static_cast<std::size_t>(layout_.ranks);
  const auto write = [&](std::uint64_t* lengths, const auto& blocks) {
    for (std::size_t i = 0; i < ranks; ++i) {
      lengths[i] = blocks.size() == ranks ? blocks[i].size() : 0;
    }
  };
  write(lengths(rank_, card.sequence, false), call.in);
  write(lengths(rank_, card.sequence, true), call.out);
}

CallView Hub::published(Rank rank, std::uint64_t sequence) const {
  const auto ranks = static_cast<std::size_t>(layout_.ranks);
  return {.card = block(rank).cards[sequence % 2],
          .in_bytes = {lengths(rank, sequence, false), ranks},
          .out_bytes = {lengths(rank, sequence, true), ranks}};
}

std::vector<Rank> Hub::missing(std::uint64_t wanted) const {
  std::vector<Rank> ranks;
  for (int rank = 0; rank < layout_.ranks; ++rank) {
    if (block(Rank{rank}).arrivals.load(std::memory_order_acquire) < wanted) {
      ranks.push_back(Rank{rank});
    }
  }
  return ranks;
}

std::optional<Error> Hub::lost(Rank peer, const std::string& doing) const {
  const auto state = memory::presence(life(peer));
  if (state != memory::Presence::died && state != memory::Presence::left) {
    return std::nullopt;
  }
  return Error{Code::peer_lost,
               fmt::format("{}: rank {} (pid {}) {}", doing, to_int(peer), life(peer).pid.load(),
                           state == memory::Presence::died ? "died" : "left the group"),
               peer};
}

Error Hub::late(const std::vector<Rank>& who, const std::string& doing) const {
  std::vector<std::string> names;
  for (const auto rank : who) {
    const bool came = memory::presence(life(rank)) != memory::Presence::absent;
    names.push_back(came ? fmt::format("rank {} (pid {})", to_int(rank), life(rank).pid.load())
                         : fmt::format("rank {} (never joined the group)", to_int(rank)));
  }
  return {Code::timed_out, fmt::format("{}: the deadline passed; still missing: {}", doing, fmt::join(names, ", ")),
          who.empty() ? std::nullopt : std::optional(who.front())};
}

Status Hub::barrier(const Card& doing, Deadline deadline) {
  ++arrivals_;
  block(rank_).arrivals.store(arrivals_, std::memory_order_release);
  for (int peer = 0; peer < layout_.ranks; ++peer) {
    if (Rank{peer} != rank_) {
      memory::ring(bell(Rank{peer}));
    }
  }
  int next = 0;  // ranks below it have come; nobody goes back
  const auto all_here = [&] {
    while (next < layout_.ranks && block(Rank{next}).arrivals.load(std::memory_order_acquire) >= arrivals_) {
      ++next;
    }
    return next == layout_.ranks;
  };
  std::optional<Error> gone;
  const auto give_up = [&] {
    for (const auto peer : missing(arrivals_)) {
      gone = gone ? gone : lost(peer, describe(doing));
    }
    return gone || broken();
  };
  if (memory::wait_until(bell(rank_), patience_, deadline, all_here, give_up)) {
    return {};
  }
  const auto who = missing(arrivals_);
  if (who.empty() && !broken()) {
    return {};  // the last one came after all
  }
  // The reason that was there first is the one that everybody reports, unless it is still being written.
  const auto mine = gone ? *gone : late(who, describe(doing));
  fail(mine);
  const auto first = *broken();
  return first.message == kBreaking ? mine : first;
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
