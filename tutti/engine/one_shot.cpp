#include <algorithm>

#include "tutti/engine/collectives.h"

namespace tutti::engine {
void Collectives::stage_small(const Running& running) const {
  std::size_t total = 0;
  for (const auto& block : running.call.in) {
    total += block.size();
  }
  auto* to =
      total <= Notice::kInside ? hub_.notice(me(), running.sequence()).inside : hub_.shelf(me(), running.sequence());
  for (const auto& block : running.call.in) {
    copy_bytes(to, block.data(), block.size());
    to += block.size();
  }
}

/// Where the block of `owner` for `taker` lies: inputs for several ranks were laid down one behind the other.
const std::byte* Collectives::staged_block(const Running& running, Rank owner, Rank taker) const {
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
  return (total <= Notice::kInside ? notice.inside : hub_.shelf(owner, running.sequence())) + offset;
}

void Collectives::finish_one_shot(const Running& running) {
  const auto& call = running.call;
  const auto take = [&](Rank from, Block to) { copy_bytes(to.data(), staged_block(running, from, me()), to.size()); };
  switch (call.op) {
    case Op::barrier: return;
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
      for (std::size_t from = 0; from < call.out.size(); ++from) {
        take(to_rank(from), call.out[from]);
      }
      return;
  }
}

}  // namespace tutti::engine
