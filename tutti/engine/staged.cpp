#include <algorithm>

#include "tutti/engine/collectives.h"
#include "tutti/kernels/stream.h"
#include "tutti/memory/line.h"

namespace tutti::engine {
namespace {

using memory::kLine;

/// The part of a block that lies in a round.
template <class BlockType>
BlockType part(BlockType block, std::size_t begin, std::size_t length) {
  const auto from = std::min(begin, block.size());
  return block.subspan(from, std::min(length, block.size() - from));
}

}  // namespace

std::size_t Collectives::chunk_bytes(const Running& running) const {
  return in_per_rank(running.card().op) ? std::max(chunk_ / ranks() / kLine, std::size_t{1}) * kLine : chunk_;
}

/// What is from each rank for one other rank alone is swapped, from one use of a slot to the next, with what is from
/// that one; where it is for all, that makes sense with two ranks only.
std::byte* Collectives::slot_piece(const Running& running, const Round& round, Rank owner, Rank taker) const {
  if (in_per_rank(running.card().op)) {
    const auto slot = round.swapped ? taker : owner;
    const auto piece = round.swapped ? owner : taker;
    return hub_.slot(slot, round.slot) + to_index(piece) * round.length;
  }
  return hub_.slot(round.swapped && ranks() == 2 ? to_rank(1 - to_index(owner)) : owner, round.slot);
}

/// Whether to stream is for one to say, since it decides what lies where.
Status Collectives::run_staged(const Running& running) {
  if (running.card().op == Op::round_sums) {
    return staged_round_sums(running);
  }
  streams_ = hub_.notice(Rank{0}, running.sequence()).streams;
  const auto began = ticks();
  auto done = running.card().op == Op::all_reduce ? staged_all_reduce(running) : run_rounds(running);
  if (done) {
    trial_.took(ticks() - began, streams_);
  }
  return done;
}

/// Every rank lays a chunk down in its slot and, when all have, takes what it needs from all slots, while the next
/// chunk is already down. Three slots: whoever lays down chunk k + 1 has seen chunk k of everybody, who were then done
/// with chunk k - 2.
Status Collectives::run_rounds(const Running& running) {
  const auto chunk = chunk_bytes(running);
  const auto rounds = std::max<std::size_t>((longest_block(running) + chunk - 1) / chunk, 1);
  const auto round_at = [&, uses = slot_uses_](std::size_t k) {
    const auto slot = k % HubLayout::kSlots;
    return Round{.begin = k * chunk,
                 .length = chunk,
                 .slot = static_cast<unsigned>(slot),
                 .swapped = !streams_ && (uses[slot] + k / HubLayout::kSlots) % 2 == 1};
  };
  for (std::size_t slot = 0; slot < HubLayout::kSlots; ++slot) {
    slot_uses_[slot] += (rounds + HubLayout::kSlots - 1 - slot) / HubLayout::kSlots;
  }
  stage(running, round_at(0));
  auto staged = hub_.step();
  for (std::size_t k = 0; k < rounds; ++k) {
    if (auto met = hub_.await_steps(staged, running.doing, running.deadline); !met) {
      return met;
    }
    if (k + 1 < rounds) {
      stage(running, round_at(k + 1));
      staged = hub_.step();
    }
    collect(running, round_at(k));
  }
  return {};
}

void Collectives::stage(const Running& running, const Round& round) const {
  const auto& call = running.call;
  const bool for_each = in_per_rank(call.op);
  for (std::size_t i = 0; i < call.in.size(); ++i) {
    if (!for_each || i != to_index(me())) {  // its own it takes from where it is
      const auto chunk = part(call.in[i], round.begin, round.length);
      lay_down(slot_piece(running, round, me(), to_rank(i)), chunk.data(), chunk.size());
    }
  }
}

void Collectives::collect(const Running& running, const Round& round) {
  const auto& call = running.call;
  if (call.out.empty()) {
    return;
  }
  const auto source = [&](Rank from) -> const std::byte* {
    return from == me() ? own_input(running, me()) + round.begin : slot_piece(running, round, from, me());
  };
  const auto take = [&](Rank from, Block block) {
    const auto chunk = part(block, round.begin, round.length);
    if (!chunk.empty()) {
      put(running, chunk, source(from));
    }
  };
  switch (call.op) {
    case Op::barrier:
    case Op::round_sums:
    case Op::all_reduce: return;
    case Op::reduce:
    case Op::reduce_scatter: {
      const auto chunk = part(call.out[0], round.begin, round.length);
      if (chunk.empty()) {
        return;
      }
      for (std::size_t rank = 0; rank < ranks(); ++rank) {
        sources_[rank] = source(to_rank(rank));
      }
      outs_[0] = chunk.data();
      kernels::reduce(reduction(running), sources_, {outs_.data(), 1}, kernels::count_of(call.dtype, chunk.size()));
      return;
    }
    case Op::broadcast:
    case Op::scatter: take(call.root, call.out[0]); return;
    case Op::all_gather:
    case Op::gather:
    case Op::all_to_all:
      // Its own first: what others sent may go to where it lies.
      for (std::size_t i = 0; i < call.out.size(); ++i) {
        const auto from = (to_index(me()) + i) % call.out.size();
        take(to_rank(from), call.out[from]);
      }
      return;
  }
}

/// Each rank adds one slice of every chunk: it reads its own part where it is and those of others from their slots. It
/// writes the sum into its output and back into each of these slots, where their ranks take it; or, when it streams,
/// into its own slot alone, where its own slice has room.
/// Steps of a rank: lay down 0, lay down 1, add 0, lay down 2, add 1, ... Whoever lays down chunk k + 1 has seen
/// everybody add chunk k - 1, which each did after laying down chunk k, after taking the sums of chunk k - 2.
Status Collectives::staged_all_reduce(const Running& running) {
  const auto& call = running.call;
  const auto chunk = chunk_;
  const auto rounds = (running.card().bytes + chunk - 1) / chunk;
  const auto slices_of = [&](std::size_t k) {
    return Slices(std::min(chunk, running.card().bytes - k * chunk), ranks());
  };
  const auto own = to_index(me());
  const auto lay_chunk_down = [&](std::size_t k) {
    const auto slices = slices_of(k);
    const auto* in = call.in[0].data() + k * chunk;
    auto* slot = hub_.slot(me(), sum_slot(k));
    const auto after = slices.begin(own + 1);
    lay_down(slot, in, slices.begin(own));
    lay_down(slot + after, in + after, slices.bytes - after);
    return hub_.step();
  };
  const auto take_sums = [&](std::size_t k) {
    const auto slices = slices_of(k);
    auto* out = call.out[0].data() + k * chunk;
    for (std::size_t i = 1; i < ranks(); ++i) {
      const auto rank = (own + i) % ranks();
      const auto* slot = hub_.slot(streams_ ? to_rank(rank) : me(), sum_slot(k));
      copy_bytes(out + slices.begin(rank), slot + slices.begin(rank), slices.length(rank));
    }
  };
  auto down = lay_chunk_down(0);
  for (std::size_t k = 0; k < rounds; ++k) {
    const auto next_down = k + 1 < rounds ? lay_chunk_down(k + 1) : down;
    if (auto met = hub_.await_steps(down, running.doing, running.deadline); !met) {
      return met;
    }
    add_slice(running, k * chunk, slices_of(k), sum_slot(k));
    const auto added = hub_.step();
    if (auto met = hub_.await_steps(added, running.doing, running.deadline); !met) {
      return met;
    }
    take_sums(k);
    down = next_down;
  }
  return {};
}

/// Three in turn. When sums go back to where they are taken from two are enough: whoever lays down chunk k + 2 has
/// taken the sums of chunk k, which nobody else touches.
unsigned Collectives::sum_slot(std::size_t chunk) const {
  return static_cast<unsigned>(chunk % (streams_ ? HubLayout::kSlots : 2));
}

/// Where the sum is streamed, a part that stays in the first cache is added and then sent off.
void Collectives::add_slice(const Running& running, std::size_t chunk_begin, const Slices& slices, unsigned slot) {
  constexpr std::size_t kInFirstCache = 8 << 10;
  const auto own = to_index(me());
  const auto* in = running.call.in[0].data() + chunk_begin;
  auto* out = running.call.out[0].data() + chunk_begin;
  const auto end = slices.begin(own + 1);
  const auto step = streams_ ? kInFirstCache : slices.each;
  for (auto at = slices.begin(own); at < end; at += step) {
    const auto bytes = std::min(step, end - at);
    std::size_t others = 0;
    for (std::size_t rank = 0; rank < ranks(); ++rank) {
      auto* theirs = hub_.slot(to_rank(rank), slot) + at;
      sources_[rank] = rank == own ? in + at : theirs;
      if (rank != own) {
        outs_[++others] = theirs;
      }
    }
    outs_[0] = out + at;
    kernels::reduce(reduction(running), sources_, {outs_.data(), streams_ ? 1 : ranks()},
                    kernels::count_of(running.call.dtype, bytes));
    if (streams_) {
      kernels::stream_copy(hub_.slot(me(), slot) + at, out + at, bytes);
    }
  }
}

}  // namespace tutti::engine
