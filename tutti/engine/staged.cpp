#include "tutti/engine/staged.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace tutti::engine {
namespace {

constexpr std::size_t kLine = 64;

/// The part of a block that lies in a round.
template <class BlockType>
BlockType part(BlockType block, std::size_t begin, std::size_t length) {
  const auto from = std::min(begin, block.size());
  return block.subspan(from, std::min(length, block.size() - from));
}

void copy_bytes(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (bytes != 0) {
    std::memmove(to, from, bytes);
  }
}

/// Whether a slot holds a sub-chunk for each rank, or one chunk for all.
bool per_rank(Op op) { return op == Op::reduce_scatter || op == Op::all_to_all || op == Op::scatter; }

}  // namespace

std::size_t Staged::chunk_bytes(Op op) const {
  const auto slot = hub_.layout().slot_bytes;
  return per_rank(op) ? slot / static_cast<std::size_t>(hub_.ranks()) / kLine * kLine : slot;
}

std::size_t Staged::longest_block(std::uint64_t sequence, const Card& card) const {
  std::uint64_t longest = 0;
  for (int rank = 0; rank < hub_.ranks(); ++rank) {
    const auto view = hub_.published(Rank{rank}, sequence);
    longest = std::max(longest, view.card.bytes);
    if (card.op == Op::all_to_all) {
      longest = std::max(longest, *std::max_element(view.in_bytes.begin(), view.in_bytes.end()));
    }
  }
  return longest;
}

Status Staged::check_published(std::uint64_t sequence) const {
  std::vector<CallView> calls;
  calls.reserve(static_cast<std::size_t>(hub_.ranks()));
  for (int rank = 0; rank < hub_.ranks(); ++rank) {
    calls.push_back(hub_.published(Rank{rank}, sequence));
  }
  return check_agreement(calls);
}

Status Staged::run(const Call& call, Deadline deadline) {
  if (auto broken = hub_.broken()) {
    return *broken;
  }
  if (auto good = check_call(call, hub_.rank(), hub_.ranks()); !good) {
    return good;
  }
  const auto card = make_card(call, ++sequence_);
  hub_.publish(card, call);
  const auto chunk = chunk_bytes(call.op);
  std::size_t longest = 0;
  Round round{.length = chunk};
  do {
    round.slot = static_cast<unsigned>(rounds_++ % 2);
    stage(call, round);
    if (auto met = hub_.barrier(card, deadline); !met) {
      return met;
    }
    if (round.begin == 0) {
      // The cards rode along with the first chunk; so far no output was touched.
      if (auto agreed = check_published(card.sequence); !agreed) {
        return agreed;
      }
      longest = longest_block(card.sequence, card);
    }
    if (call.op == Op::all_reduce) {
      if (auto done = finish_all_reduce(call, round, card, deadline); !done) {
        return done;
      }
    } else {
      collect(call, round);
    }
    round.begin += chunk;
  } while (round.begin < longest);
  return {};
}

void Staged::stage(const Call& call, const Round& round) const {
  auto* slot = hub_.slot(hub_.rank(), round.slot);
  for (const auto& block : call.in) {
    const auto chunk = part(block, round.begin, round.length);
    copy_bytes(slot, chunk.data(), chunk.size());
    slot += round.length;
  }
}

void Staged::collect(const Call& call, const Round& round) const {
  const auto mine = to_index(hub_.rank()) * round.length;
  const auto take = [&](Block block, Rank from, std::size_t offset) {
    const auto chunk = part(block, round.begin, round.length);
    copy_bytes(chunk.data(), hub_.slot(from, round.slot) + offset, chunk.size());
  };
  switch (call.op) {
    case Op::barrier:
    case Op::all_reduce: return;
    case Op::reduce:
      if (!call.out.empty()) {
        const auto chunk = part(call.out[0], round.begin, round.length);
        reduce_from_slots(call, round, 0, chunk.data(), chunk.size());
      }
      return;
    case Op::broadcast:
      if (!call.out.empty()) {
        take(call.out[0], call.root, 0);
      }
      return;
    case Op::all_gather:
    case Op::gather:
      for (std::size_t from = 0; from < call.out.size(); ++from) {
        take(call.out[from], to_rank(from), 0);
      }
      return;
    case Op::reduce_scatter: {
      const auto chunk = part(call.out[0], round.begin, round.length);
      reduce_from_slots(call, round, mine, chunk.data(), chunk.size());
      return;
    }
    case Op::all_to_all:
      for (std::size_t from = 0; from < call.out.size(); ++from) {
        take(call.out[from], to_rank(from), mine);
      }
      return;
    case Op::scatter: take(call.out[0], call.root, mine); return;
  }
}

/// Every rank reduces its slice of the chunk, in place in its own slot; all meet again; everybody copies all slices.
Status Staged::finish_all_reduce(const Call& call, const Round& round, const Card& card, Deadline deadline) const {
  const auto chunk = part(call.out[0], round.begin, round.length);
  const auto lines = (chunk.size() + kLine - 1) / kLine;
  const auto ranks = static_cast<std::size_t>(hub_.ranks());
  const auto slice_bytes = (lines + ranks - 1) / ranks * kLine;
  const auto slice = [&](std::size_t rank) { return part(chunk, rank * slice_bytes, slice_bytes); };

  const auto me = to_index(hub_.rank());
  reduce_from_slots(call, round, me * slice_bytes, hub_.slot(hub_.rank(), round.slot) + me * slice_bytes,
                    slice(me).size());
  if (auto met = hub_.barrier(card, deadline); !met) {
    return met;
  }
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    copy_bytes(slice(rank).data(), hub_.slot(to_rank(rank), round.slot) + rank * slice_bytes, slice(rank).size());
  }
  return {};
}

void Staged::reduce_from_slots(const Call& call, const Round& round, std::size_t slot_offset, std::byte* out,
                               std::size_t bytes) const {
  if (bytes == 0) {
    return;
  }
  std::vector<const std::byte*> sources;
  sources.reserve(static_cast<std::size_t>(hub_.ranks()));
  for (int rank = 0; rank < hub_.ranks(); ++rank) {
    sources.push_back(hub_.slot(Rank{rank}, round.slot) + slot_offset);
  }
  kernels::reduce(call.reduce, call.dtype, sources, out, bytes / kernels::size_of(call.dtype));
}

}  // namespace tutti::engine
