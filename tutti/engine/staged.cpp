#include <algorithm>

#include "tutti/engine/collectives.h"

namespace tutti::engine {
namespace {

constexpr std::size_t kLine = 64;

/// The part of a block that lies in a round.
template <class BlockType>
BlockType part(BlockType block, std::size_t begin, std::size_t length) {
  const auto from = std::min(begin, block.size());
  return block.subspan(from, std::min(length, block.size() - from));
}

}  // namespace

std::size_t Collectives::chunk_bytes(const Running& running) const {
  const auto slot = hub_.layout().slot_bytes;
  return in_per_rank(running.card().op) ? slot / ranks() / kLine * kLine : slot;
}

/// Every rank lays a chunk down in its slot and, when all have, takes what it needs from all slots, while the next
/// chunk is already down. Three slots: whoever lays down chunk k + 1 has seen chunk k of everybody, who were then done
/// with chunk k - 2.
Status Collectives::run_staged(const Running& running) {
  if (running.card().op == Op::all_reduce) {
    return staged_all_reduce(running);
  }
  const auto chunk = chunk_bytes(running);
  const auto rounds = std::max<std::size_t>((longest_block(running) + chunk - 1) / chunk, 1);
  const auto round_at = [&](std::size_t k) {
    return Round{.begin = k * chunk, .length = chunk, .slot = static_cast<unsigned>(k % HubLayout::kSlots)};
  };
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
  const bool own_is_read_in_place = call.op == Op::reduce_scatter;
  auto* slot = hub_.slot(me(), round.slot);
  for (std::size_t i = 0; i < call.in.size(); ++i) {
    if (!own_is_read_in_place || i != to_index(me())) {
      const auto chunk = part(call.in[i], round.begin, round.length);
      copy_bytes(slot, chunk.data(), chunk.size());
    }
    slot += round.length;
  }
}

void Collectives::collect(const Running& running, const Round& round) {
  const auto& call = running.call;
  if (call.out.empty()) {
    return;
  }
  const auto mine = in_per_rank(call.op) ? to_index(me()) * round.length : 0;
  const auto take = [&](Rank from, Block block) {
    const auto chunk = part(block, round.begin, round.length);
    copy_bytes(chunk.data(), hub_.slot(from, round.slot) + mine, chunk.size());
  };
  switch (call.op) {
    case Op::barrier:
    case Op::all_reduce: return;
    case Op::reduce:
    case Op::reduce_scatter: {
      const auto chunk = part(call.out[0], round.begin, round.length);
      if (chunk.empty()) {
        return;
      }
      for (std::size_t rank = 0; rank < ranks(); ++rank) {
        sources_[rank] = hub_.slot(to_rank(rank), round.slot) + mine;
      }
      if (call.op == Op::reduce_scatter) {
        sources_[to_index(me())] = part(call.in[to_index(me())], round.begin, round.length).data();
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
      for (std::size_t from = 0; from < call.out.size(); ++from) {
        take(to_rank(from), call.out[from]);
      }
      return;
  }
}

/// Each rank adds one slice of every chunk: it reads its own part where it is and those of others from their slots,
/// and writes the sum into its output and, for the others, into its slot, where its own slice has room.
/// Steps of a rank: lay down 0, lay down 1, add 0, lay down 2, add 1, ... Whoever lays down chunk k + 1 has seen
/// everybody add chunk k - 1, which each did after laying down chunk k, after taking the sums of chunk k - 2.
Status Collectives::staged_all_reduce(const Running& running) {
  const auto& call = running.call;
  const auto chunk = hub_.layout().slot_bytes;
  const auto rounds = (running.card().bytes + chunk - 1) / chunk;
  const auto my_index = to_index(me());
  const auto slot_of = [&](std::size_t rank, std::size_t k) {
    return hub_.slot(to_rank(rank), static_cast<unsigned>(k % HubLayout::kSlots));
  };
  const auto lay_down = [&](std::size_t k) {
    const auto in = part(call.in[0], k * chunk, chunk);
    const Slices slices(in.size(), ranks());
    auto* slot = slot_of(my_index, k);
    const auto after = slices.begin(my_index + 1);
    copy_bytes(slot, in.data(), slices.begin(my_index));
    copy_bytes(slot + after, in.data() + after, in.size() - after);
    return hub_.step();
  };
  const auto add = [&](std::size_t k) {
    const auto in = part(call.in[0], k * chunk, chunk);
    const Slices slices(in.size(), ranks());
    const auto begin = slices.begin(my_index);
    for (std::size_t rank = 0; rank < ranks(); ++rank) {
      sources_[rank] = rank == my_index ? in.data() + begin : slot_of(rank, k) + begin;
    }
    outs_[0] = part(call.out[0], k * chunk, chunk).data() + begin;
    outs_[1] = slot_of(my_index, k) + begin;  // for the others, when there are any
    kernels::reduce(reduction(running), sources_, {outs_.data(), std::min<std::size_t>(ranks(), 2)},
                    kernels::count_of(call.dtype, slices.length(my_index)));
    return hub_.step();
  };
  const auto take_sums = [&](std::size_t k) {
    const auto out = part(call.out[0], k * chunk, chunk);
    const Slices slices(out.size(), ranks());
    for (std::size_t i = 1; i < ranks(); ++i) {
      const auto rank = (my_index + i) % ranks();
      copy_bytes(out.data() + slices.begin(rank), slot_of(rank, k) + slices.begin(rank), slices.length(rank));
    }
  };
  auto down = lay_down(0);
  for (std::size_t k = 0; k < rounds; ++k) {
    const auto next_down = k + 1 < rounds ? lay_down(k + 1) : down;
    if (auto met = hub_.await_steps(down, running.doing, running.deadline); !met) {
      return met;
    }
    const auto added = add(k);
    if (auto met = hub_.await_steps(added, running.doing, running.deadline); !met) {
      return met;
    }
    take_sums(k);
    down = next_down;
  }
  return {};
}

}  // namespace tutti::engine
