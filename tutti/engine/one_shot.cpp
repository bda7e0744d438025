#include <algorithm>

#include "tutti/engine/collectives.h"

namespace tutti::engine {

/// Two are used in turn, and swapped from turn to turn where there is one who reads each. Two others are for what is
/// streamed: that is quickest where the writer has nothing of it in its caches.
std::byte* Collectives::shelf_of(const Running& running, Rank owner) const {
  const auto turn = static_cast<unsigned>(shelf_uses_ % 2);
  if (hub_.notice(owner, running.sequence()).streams) {
    return hub_.shelf(owner, 2 + turn);
  }
  const bool swapped = ranks() == 2 && shelf_uses_ / 2 % 2 == 1;
  return hub_.shelf(swapped ? to_rank(1 - to_index(owner)) : owner, turn);
}

void Collectives::stage_small(const Running& running, std::size_t total) {
  const bool timed = running.card().bytes >= StoreTrial::kFrom;
  const auto began = timed ? ticks() : 0;
  auto* to = total <= Notice::kInside ? hub_.notice(me(), running.sequence()).inside : shelf_of(running, me());
  for (const auto& block : running.call.in) {
    lay_down(to, block.data(), block.size());
    to += block.size();
  }
  spent_ = timed ? ticks() - began : 0;
}

/// Where the block of `owner` for `taker` lies: inputs for several ranks were laid down one behind the other. This
/// rank's own is read where it is: its copy may be on its way to another core.
const std::byte* Collectives::staged_block(const Running& running, Rank owner, Rank taker) const {
  if (owner == me()) {
    return own_input(running, taker);
  }
  const auto& notice = hub_.notice(owner, running.sequence());
  std::size_t total = notice.card.bytes;
  std::size_t offset = 0;
  if (in_per_rank(notice.card.op)) {
    if (notice.card.plain) {
      offset = notice.card.bytes * to_index(taker);
      total = notice.card.bytes * ranks();
    } else {
      const auto lengths = hub_.table(owner, running.sequence()).in_bytes;
      total = 0;
      for (std::size_t rank = 0; rank < ranks(); ++rank) {
        offset += rank < to_index(taker) ? lengths[rank] : 0;
        total += lengths[rank];
      }
    }
  }
  return (total <= Notice::kInside ? notice.inside : shelf_of(running, owner)) + offset;
}

void Collectives::finish_one_shot(const Running& running) {
  const auto began = spent_ == 0 ? 0 : ticks();
  take_small(running);
  ++shelf_uses_;
  if (began != 0) {
    trial_.took(spent_ + ticks() - began, streams_);
  }
}

void Collectives::take_small(const Running& running) {
  const auto& call = running.call;
  const auto take = [&](Rank from, Block to) { copy_bytes(to.data(), staged_block(running, from, me()), to.size()); };
  switch (call.op) {
    case Op::barrier:
    case Op::round_sums: return;
    case Op::all_reduce:
    case Op::reduce:
    case Op::reduce_scatter: {
      if (call.out.empty() || call.out[0].empty()) {
        return;
      }
      for (std::size_t rank = 0; rank < ranks(); ++rank) {
        sources_[rank] = staged_block(running, to_rank(rank), me());
      }
      outs_[0] = call.out[0].data();
      kernels::reduce(reduction(running), sources_, {outs_.data(), 1},
                      kernels::count_of(call.dtype, call.out[0].size()));
      return;
    }
    case Op::broadcast:
    case Op::scatter:
      if (!call.out.empty()) {
        take(call.root, call.out[0]);
      }
      return;
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

}  // namespace tutti::engine
