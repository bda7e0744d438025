#include <algorithm>
#include <cstring>

#include "tutti/engine/collectives.h"

namespace tutti::engine {

Result<std::byte*> Collectives::peer_input(const Running& running, Rank owner, Rank taker) const {
  const auto& notice = hub_.notice(owner, running.sequence());
  const auto bytes = in_bytes(running, owner, taker);
  if (!in_per_rank(running.card().op)) {
    return reach_.at(owner, notice.in_place, bytes);
  }
  if (notice.card.plain) {
    return reach_.at(owner, notice.in_place + bytes * to_index(taker), bytes);
  }
  return reach_.at(owner, hub_.table(owner, running.sequence()).in_places[to_index(taker)], bytes);
}

namespace {

/// Also where there is no memory left: others would wait until this rank has left.
struct Leaving {
  Hub& hub;
  ~Leaving() { hub.leave(); }
};

}  // namespace

/// All inputs are in place since the notices were posted; after the last step nobody reads them, or writes, any more.
Status Collectives::run_direct(const Running& running) {
  if (!hub_.enter()) {
    return *hub_.broken();
  }
  Status done;
  {
    const Leaving leaving{hub_};
    done = move_directly(running);
  }
  if (!done) {
    hub_.fail(done.error());  // others may wait for what this rank cannot do
    return done;
  }
  return hub_.meet(running.doing, running.deadline);
}

Status Collectives::move_directly(const Running& running) {
  const auto& call = running.call;
  switch (call.op) {
    case Op::barrier: return {};
    case Op::all_reduce: return direct_all_reduce(running);
    case Op::reduce: return direct_reduce(running);
    case Op::round_sums: return direct_round_sums(running);
    case Op::reduce_scatter: return direct_reduce_scatter(running);
    case Op::broadcast:
    case Op::scatter: return call.out.empty() ? Status() : direct_copy(running, call.root, call.out[0]);
    case Op::all_gather:
    case Op::gather:
    case Op::all_to_all: break;
  }
  // Each rank begins with another peer, so that not all read the same one at once.
  Status done;
  for (std::size_t i = 0; i < call.out.size() && done; ++i) {
    const auto from = (to_index(me()) + i) % ranks();
    done = direct_copy(running, to_rank(from), call.out[from]);
  }
  return done;
}

Status Collectives::direct_copy(const Running& running, Rank from, Block to) const {
  const auto source = peer_input(running, from, me());
  if (!source) {
    return source.error();
  }
  put(running, to, source.value());
  return {};
}

/// Two shots: each rank adds its slice of all inputs and writes the sum into all outputs. Every buffer is read once and
/// written once.
Status Collectives::direct_all_reduce(const Running& running) {
  const Slices slices(running.card().bytes, ranks());
  const auto begin = slices.begin(to_index(me()));
  const auto length = slices.length(to_index(me()));
  for (std::size_t rank = 0; rank < ranks(); ++rank) {
    const auto& notice = hub_.notice(to_rank(rank), running.sequence());
    const auto in = reach_.at(to_rank(rank), notice.in_place, running.card().bytes);
    const auto out =
        notice.out_place == notice.in_place ? in : reach_.at(to_rank(rank), notice.out_place, running.card().bytes);
    if (!in || !out) {
      return in ? out.error() : in.error();
    }
    sources_[rank] = in.value() + begin;
    outs_[rank] = out.value() + begin;
  }
  kernels::reduce(reduction(running), sources_, {outs_.data(), ranks()}, kernels::count_of(running.call.dtype, length));
  return {};
}

/// Every rank adds a slice and writes it to the root, when the root's output can be reached; else the root adds all.
Status Collectives::direct_reduce(const Running& running) {
  const auto root = running.card().root;
  const auto place = hub_.notice(root, running.sequence()).out_place;
  const bool shared = place < Notice::kStaged;
  if (!shared && me() != root) {
    return {};
  }
  const Slices slices(running.card().bytes, shared ? ranks() : 1);
  const auto mine = shared ? to_index(me()) : 0;
  const auto out =
      shared ? reach_.at(root, place, running.card().bytes) : Result<std::byte*>(running.call.out[0].data());
  if (!out) {
    return out.error();
  }
  for (std::size_t rank = 0; rank < ranks(); ++rank) {
    const auto in = peer_input(running, to_rank(rank), me());
    if (!in) {
      return in.error();
    }
    sources_[rank] = in.value() + slices.begin(mine);
  }
  outs_[0] = out.value() + slices.begin(mine);
  kernels::reduce(reduction(running), sources_, {outs_.data(), 1},
                  kernels::count_of(running.call.dtype, slices.length(mine)));
  return {};
}

Status Collectives::direct_reduce_scatter(const Running& running) {
  const auto out = running.call.out[0];
  for (std::size_t rank = 0; rank < ranks(); ++rank) {
    const auto in = peer_input(running, to_rank(rank), me());
    if (!in) {
      return in.error();
    }
    sources_[rank] = in.value();
  }
  outs_[0] = out.data();
  if (!out.empty()) {
    kernels::reduce(reduction(running), sources_, {outs_.data(), 1}, kernels::count_of(running.call.dtype, out.size()));
  }
  return {};
}

}  // namespace tutti::engine
