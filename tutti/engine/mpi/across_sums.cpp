// Sums of all ranks, first inside of hosts, then between them.
#include <algorithm>
#include <cstring>

#include "tutti/engine/mpi/across.h"

namespace tutti::engine::mpi {
namespace {

using kernels::ReduceOp;

/// An average is divided, and an input multiplied, once.
ReduceOp inside(ReduceOp op) { return op == ReduceOp::avg ? ReduceOp::sum : op; }
/// Bytes that a rank adds up between hosts at once.
constexpr std::size_t kUsualSlice = std::size_t{512} << 10;

ReduceOp between(ReduceOp op) { return op == ReduceOp::premul_sum ? ReduceOp::sum : inside(op); }

}  // namespace

bool Across::is_small(const Card& card, const plan::Choice* choice) const {
  if (card.op != Op::all_reduce || card.bytes == 0) {
    return false;
  }
  const auto bytes = Widened::bytes_for(card);
  if (choice == nullptr) {
    return bytes <= longest_small_;
  }
  return choice->kind == plan::Choice::Kind::at_once && bytes <= kLongestSmall;
}

/// In slices, what another choice says of them aside.
Across::Slicing Across::slicing_of(const plan::Choice* choice) const {
  Slicing slicing{.leaders = wires_.members.fewest(), .slice = kUsualSlice, .between = {}};
  if (choice != nullptr && choice->leaders != 0) {
    slicing.leaders = std::min<std::size_t>(slicing.leaders, choice->leaders);
  }
  if (choice != nullptr && choice->slice != 0) {
    slicing.slice = choice->slice;
  }
  if (choice != nullptr) {
    slicing.between = choice->between;
  }
  return slicing;
}

Status Across::sum(const Running& running, const plan::Choice* choice) {
  const bool small = is_small(running.card(), choice);
  slicing_ = slicing_of(choice);
  const auto run = [&](const Running& each) {
    return small ? small_sum(each) : to_the_end([&] { return large_sum(each); });
  };
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
  const auto mark = mark_of(running.doing, chosen_.mark(Op::all_reduce));
  auto status = near_.run_part(part, {.whole = running.doing, .mark = mark}, running.deadline);
  if (!status && status.error().code == Code::mismatch) {
    return explain_near(running, status.error());
  }
  return status;
}

/// To the leader, who adds it up with those of the other hosts as they greet each other, and back.
Status Across::small_sum(const Running& running) {
  const auto& call = running.call;
  const auto bytes = call.in[0].size();
  message_.resize(sizeof(Greeting) + bytes);
  std::byte* message = exchange_ ? exchange_->message() : message_.data();
  auto mine = reduce_near(running, {message + sizeof(Greeting), bytes});
  if (!mine && mine.error().code != Code::mismatch) {
    return mine;
  }
  // Where ranks of this host differ, all of them know it by now; they may differ in lengths, too.
  const auto told_bytes = mine ? bytes : 0;
  if (exchange_) {
    Greeting greeting{.sequence = running.doing.sequence,
                      .card = running.card(),
                      .mark = chosen_.mark(Op::all_reduce),
                      .rank = to_int(me())};
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
  const Slices slices(whole.size(), slicing_.leaders);
  return index < slicing_.leaders ? whole.subspan(slices.begin(index), slices.length(index))
                                  : whole.subspan(whole.size(), 0);
}

/// Inside of the host every rank adds up a slice, and adds it to that of its like on other hosts. Of a long one, a
/// segment is between hosts while the next is added up inside, and the last one spread.
Status Across::large_sum(const Running& running) {
  const auto segments = segments_of(running.call.out[0].size());
  const auto parts = segments.size() - 1;
  auto status = scatter_near(running, segments, 0);
  for (std::size_t i = 0; i < parts && status; ++i) {
    if (i == 0) {
      begin_between_hosts(running, segments, 0);
    }
    if (i + 1 < parts) {
      status = scatter_near(running, segments, i + 1);
    }
    if (status) {
      status = finish_between_hosts(running, segments, i);
    }
    if (status && i + 1 < parts) {
      begin_between_hosts(running, segments, i + 1);
    }
    if (status) {
      status = gather_near(running, segments, i);
    }
  }
  return status;
}

/// Where segments begin, and where the last one ends. Short ones: while ranks of a host are busy with each other,
/// nobody moves what is between hosts, and the network has no more to do than what it was given before.
Across::Segments Across::segments_of(std::size_t bytes) const {
  const auto each = slicing_.slice * std::max<std::size_t>(slicing_.leaders, 2);
  Segments segments{0};
  while (segments.back() + each + each / 2 < bytes) {
    segments.push_back(segments.back() + each);
  }
  segments.push_back(bytes);
  return segments;
}

Block Across::segment_of(Block whole, const Segments& segments, std::size_t index) {
  return whole.subspan(segments[index], segments[index + 1] - segments[index]);
}

/// This rank's part of a segment of the sum of the ranks here.
Status Across::scatter_near(const Running& running, const Segments& segments, std::size_t index) {
  const auto& call = running.call;
  const Block all(const_cast<std::byte*>(call.in[0].data()), call.in[0].size());  // only read
  const auto in = segment_of(all, segments, index);
  const auto out = segment_of(call.out[0], segments, index);
  Call scatter{.op = Op::reduce_scatter,
               .dtype = call.dtype,
               .reduce = inside(call.reduce),
               .factor = call.factor,
               .site = call.site};
  if (near_ranks() == 1) {
    scatter.in = {ConstBlock(in)};
    take_input(scatter, out.data());
    return {};
  }
  for (std::size_t rank = 0; rank < near_ranks(); ++rank) {
    scatter.in.push_back(slice_of(in, rank));
  }
  scatter.out = {slice_of(out, to_index(local()))};
  return near_.run_part(scatter, {.whole = running.doing, .mark = 1}, running.deadline);
}

Status Across::gather_near(const Running& running, const Segments& segments, std::size_t index) {
  if (near_ranks() == 1) {
    return {};
  }
  const auto out = segment_of(running.call.out[0], segments, index);
  Call gather{.op = Op::all_gather, .dtype = running.call.dtype, .site = running.call.site};
  gather.in = {ConstBlock(slice_of(out, to_index(local())))};
  for (std::size_t rank = 0; rank < near_ranks(); ++rank) {
    gather.out.push_back(slice_of(out, rank));
  }
  return near_.run_part(gather, {.whole = running.doing, .mark = 1}, later(running.deadline));
}

/// By which plan so many bytes are added up between hosts.
PlanRunner& Across::runner_between_hosts(std::size_t bytes) {
  constexpr std::size_t kChunk = std::size_t{512} << 10;
  constexpr std::size_t kMostChunks = 32;
  constexpr std::size_t kLong = std::size_t{1} << 20;
  const auto hosts = wires_.members.hosts();
  // Two hosts swap all they have: nothing waits for anything. More would send the same things around too often.
  const auto algorithm = slicing_.between ? *slicing_.between
                         : hosts == 2     ? plan::Algorithm::recursive_doubling
                         : bytes >= kLong ? plan::Algorithm::ring
                                          : plan::Algorithm::halving_doubling;
  const auto chunks = static_cast<unsigned>(std::clamp<std::size_t>(bytes / kChunk, 1, kMostChunks));
  return outer_runner(plan::Op::all_reduce, algorithm, chunks);
}

PlanRunner& Across::outer_runner(plan::Op op, plan::Algorithm algorithm, unsigned chunks) {
  const std::tuple key{op, algorithm, chunks};
  const auto found = outer_.find(key);
  if (found != outer_.end()) {
    return found->second;
  }
  const plan::Request request{.op = op, .algorithm = algorithm, .ranks = wires_.members.hosts(), .chunks = chunks};
  return outer_
      .emplace(std::piecewise_construct, std::forward_as_tuple(key),
               std::forward_as_tuple(plan::shape_of(request).value(), plan::build(request, Rank{host()}).value(),
                                     outer_scratch_))
      .first->second;
}

void Across::begin_between(const Running& running, Call call, PlanRunner& runner) {
  between_.call = std::move(call);
  between_.doing = {.card = make_card(between_.call), .sequence = running.doing.sequence, .whole = &running.doing};
  between_.runner = &runner;
  runner.begin(between_.call, leader_links_, between_.doing);
}

/// Of a rank that has no part in it, nothing.
Status Across::finish_between(Deadline deadline) {
  return between_.runner == nullptr ? Status() : between_.runner->finish(deadline);
}

void Across::begin_between_hosts(const Running& running, const Segments& segments, std::size_t index) {
  const auto slice = slice_of(segment_of(running.call.out[0], segments, index), to_index(local()));
  between_.runner = nullptr;
  if (slice.empty()) {
    return;
  }
  Call sum{.op = Op::all_reduce, .dtype = running.call.dtype, .reduce = between(running.call.reduce)};
  sum.in = {ConstBlock(slice)};
  sum.out = {slice};
  begin_between(running, std::move(sum), runner_between_hosts(slice.size()));
}

Status Across::finish_between_hosts(const Running& running, const Segments& segments, std::size_t index) {
  auto status = finish_between(running.deadline);
  if (status && running.call.reduce == ReduceOp::avg) {
    const auto slice = slice_of(segment_of(running.call.out[0], segments, index), to_index(local()));
    finish_sum(running.call, slice.data(), slice);
  }
  return status;
}

}  // namespace tutti::engine::mpi
