// Sums of all ranks, first inside of hosts, then between them.
#include <algorithm>
#include <cstring>

#include "tutti/engine/mpi/across.h"

namespace tutti::engine::mpi {
namespace {

using kernels::ReduceOp;

/// An average is divided, and an input multiplied, once.
ReduceOp inside(ReduceOp op) { return op == ReduceOp::avg ? ReduceOp::sum : op; }
ReduceOp between(ReduceOp op) { return op == ReduceOp::premul_sum ? ReduceOp::sum : inside(op); }

}  // namespace

bool Across::is_small(const Card& card) const {
  return card.op == Op::all_reduce && card.bytes != 0 && Widened::bytes_for(card) <= longest_small_;
}

Status Across::sum(const Running& running, bool small) {
  const auto run = [&](const Running& each) { return small ? small_sum(each) : large_sum(each); };
  if (!Widened::type_for(running.card())) {
    return run(running);
  }
  auto status = run({.call = widened_.begin(running.call), .doing = running.doing, .deadline = running.deadline});
  if (status) {
    widened_.finish(running.call, wires_.members.ranks());
  }
  return status;
}

void Across::take_input(const Call& call, std::byte* to) const {
  const auto* from = call.in[0].data();
  if (call.reduce == ReduceOp::premul_sum) {
    kernels::reduce({.op = ReduceOp::premul_sum, .dtype = call.dtype, .factors = {&call.factor, 1}}, {&from, 1},
                    {&to, 1}, kernels::count_of(call.dtype, call.in[0].size()));
  } else {
    copy_bytes(to, from, call.in[0].size());
  }
}

void Across::finish_sum(const Call& call, const std::byte* from, Block to) const {
  auto* const out = to.data();
  if (call.reduce == ReduceOp::avg) {
    kernels::reduce(
        {.op = ReduceOp::avg, .dtype = call.dtype, .divisor = static_cast<std::size_t>(wires_.members.ranks())},
        {&from, 1}, {&out, 1}, kernels::count_of(call.dtype, to.size()));
  } else {
    copy_bytes(out, from, to.size());
  }
}

/// This host's share, at its leader.
Status Across::reduce_near(const Running& running, Block to) {
  const auto& call = running.call;
  if (near_ranks() == 1) {
    take_input(call, to.data());
    return {};
  }
  Call part{
      .op = Op::reduce, .dtype = call.dtype, .reduce = inside(call.reduce), .factor = call.factor, .site = call.site};
  part.in = {call.in[0]};
  if (is_leader()) {
    part.out = {to};
  }
  auto status = near_.run_part(part, {.whole = running.doing, .mark = mark_of(running.doing, 0)}, running.deadline);
  if (!status && status.error().code == Code::mismatch) {
    return explain_near(running, status.error());
  }
  return status;
}

/// To the leader, who adds it up with those of the other hosts as they greet each other, and back.
Status Across::small_sum(const Running& running) {
  const auto& call = running.call;
  const auto bytes = call.in[0].size();
  message_.resize(sizeof(Greeting) + longest_small_);
  std::byte* message = exchange_ ? exchange_->message() : message_.data();
  auto mine = reduce_near(running, {message + sizeof(Greeting), bytes});
  if (!mine && mine.error().code != Code::mismatch) {
    return mine;
  }
  // Where ranks of this host differ, all of them know it by now; they may differ in lengths, too.
  const auto told_bytes = mine ? bytes : 0;
  if (exchange_) {
    Greeting greeting{.sequence = running.doing.sequence, .card = running.card(), .rank = to_int(me())};
    mine = exchange_->run(greeting, bytes, mine, {.op = between(call.reduce), .dtype = call.dtype}, running.doing,
                          running.deadline);
    if (!mine && mine.error().code != Code::mismatch) {
      return mine;
    }
    message = exchange_->message();
  }
  if (auto told = tell_verdict(running, told_bytes, mine, message); !told) {
    return told;
  }
  finish_sum(call, message + sizeof(Greeting), call.out[0]);
  return {};
}

/// One for each rank that adds up between hosts, all as long as can be; of a rank that does not, nothing.
Block Across::slice_of(Block whole, std::size_t index) const {
  const Slices slices(whole.size(), wires_.members.fewest());
  return index < wires_.members.fewest() ? whole.subspan(slices.begin(index), slices.length(index))
                                         : whole.subspan(whole.size(), 0);
}

/// Inside of the host every rank adds up a slice, and adds it to that of its like on other hosts.
Status Across::large_sum(const Running& running) {
  const auto& call = running.call;
  const auto out = call.out[0];
  const auto mine = slice_of(out, to_index(local()));
  const Collectives::Part part{.whole = running.doing, .mark = 1};
  if (near_ranks() == 1) {
    take_input(call, out.data());
  } else {
    Call scatter{.op = Op::reduce_scatter,
                 .dtype = call.dtype,
                 .reduce = inside(call.reduce),
                 .factor = call.factor,
                 .site = call.site};
    const Block in(const_cast<std::byte*>(call.in[0].data()), call.in[0].size());  // only read
    for (std::size_t rank = 0; rank < near_ranks(); ++rank) {
      scatter.in.push_back(slice_of(in, rank));
    }
    scatter.out = {mine};
    if (auto scattered = near_.run_part(scatter, part, running.deadline); !scattered) {
      return scattered;
    }
  }
  if (!mine.empty()) {
    if (auto added = add_between_hosts(running, mine); !added) {
      return added;
    }
    if (call.reduce == ReduceOp::avg) {
      finish_sum(call, mine.data(), mine);
    }
  }
  if (near_ranks() == 1) {
    return {};
  }
  Call gather{.op = Op::all_gather, .dtype = call.dtype, .site = call.site};
  gather.in = {ConstBlock(mine)};
  for (std::size_t rank = 0; rank < near_ranks(); ++rank) {
    gather.out.push_back(slice_of(out, rank));
  }
  return near_.run_part(gather, part, later(running.deadline));
}

Status Across::add_between_hosts(const Running& running, Block slice) {
  constexpr std::size_t kChunk = std::size_t{512} << 10;
  constexpr std::size_t kMostChunks = 32;
  constexpr std::size_t kLong = std::size_t{1} << 20;
  const auto hosts = wires_.members.hosts();
  const auto algorithm = hosts > 2 && slice.size() >= kLong ? plan::Algorithm::ring : plan::Algorithm::halving_doubling;
  const auto chunks = static_cast<unsigned>(std::clamp<std::size_t>(slice.size() / kChunk, 1, kMostChunks));
  auto found = outer_.find({algorithm, chunks});
  if (found == outer_.end()) {
    const plan::Request request{.op = plan::Op::all_reduce, .algorithm = algorithm, .ranks = hosts, .chunks = chunks};
    found =
        outer_
            .emplace(std::piecewise_construct, std::forward_as_tuple(algorithm, chunks),
                     std::forward_as_tuple(plan::shape_of(request).value(), plan::build(request, Rank{host()}).value()))
            .first;
  }
  Call call{.op = Op::all_reduce, .dtype = running.call.dtype, .reduce = between(running.call.reduce)};
  call.in = {ConstBlock(slice)};
  call.out = {slice};
  const Doing part{.card = make_card(call), .sequence = running.doing.sequence, .whole = &running.doing};
  return found->second.run(call, leader_links_, part, running.deadline);
}

}  // namespace tutti::engine::mpi
